"""A specialist's envelope: what must be in it, what should be, and what is left out."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.envelope import (
    EXPECTED,
    OWN,
    EnvelopeStatus,
    Role,
    envelope_template,
    fill_in,
    hand_off,
    read_envelope,
    task_id_of,
)

REST = "\n".join(f"{name}: something" for name in EXPECTED)
GOOD = f"STATUS: SUCCESS\nSUMMARY: It works.\n{REST}"


def test_a_whole_envelope_is_ok() -> None:
    """D03, D04"""
    found = read_envelope(GOOD)
    assert (found.ok, found.status, found.summary) == (True, EnvelopeStatus.SUCCESS, "It works.")
    assert (found.errors, found.warnings, found.feedback) == ((), (), "")
    assert found.fields["EVIDENCE"] == "something"


@pytest.mark.parametrize("status", EnvelopeStatus)
def test_there_are_four_statuses_and_their_value_is_trimmed(status: EnvelopeStatus) -> None:
    """D03"""
    assert read_envelope(f"STATUS:   {status} \t\nSUMMARY: x\n{REST}").status is status


@pytest.mark.parametrize("said", ["success", "Success", "SUCCESS!", "DONE", "", "SUCCESS PARTIAL"])
def test_an_unknown_status_is_an_error(said: str) -> None:
    """D03: case-sensitive"""
    found = read_envelope(GOOD.replace("SUCCESS", said))
    assert (found.ok, found.status) == (False, None)
    assert "must be one of SUCCESS, PARTIAL, BLOCKED, NOT_APPLICABLE" in found.feedback


@pytest.mark.parametrize("name", ["STATUS", "SUMMARY", *EXPECTED])
def test_what_is_missing_is_an_error_or_a_warning(name: str) -> None:
    """D03"""
    lines = [line for line in GOOD.splitlines() if not line.startswith(name)]
    for text in ("\n".join(lines), "\n".join([*lines, f"{name}:  "])):
        found = read_envelope(text)
        assert found.ok is (name in EXPECTED)
        assert any(name in each for each in (found.warnings if found.ok else found.errors))


@pytest.mark.parametrize("name", ["STATUS", "SUMMARY", *EXPECTED])
def test_a_field_that_is_there_twice_is_an_error(name: str) -> None:
    """D03: also if both say the same"""
    line = next(line for line in GOOD.splitlines() if line.startswith(name))
    found = read_envelope(f"{GOOD}\n{line}")
    assert not found.ok
    assert found.errors[0] == f"{name} is there twice."


def test_prose_fences_and_other_headers_are_left_out() -> None:
    """D03"""
    text = f"Here it is.\nstatus: x\n```text\n{GOOD}\nSOME NOTE: SUMMARY\nof mine\n```"
    found = read_envelope(text)
    assert found.ok
    assert found.fields["RECOMMENDED_NEXT_STEP"] == "something"
    assert "SOME NOTE" not in found.fields
    fenced = read_envelope(f"```\n{GOOD}\n```")
    assert fenced.fields["RECOMMENDED_NEXT_STEP"] == "something"
    assert not read_envelope(GOOD.replace("STATUS:", " STATUS:")).ok
    assert not read_envelope(GOOD.replace("STATUS:", "- STATUS:")).ok


def test_a_field_may_have_several_lines() -> None:
    """D06"""
    found = read_envelope(GOOD.replace("EVIDENCE: something", "EVIDENCE:\n- one\n- two: 2\n"))
    assert found.fields["EVIDENCE"] == "- one\n- two: 2"
    assert read_envelope(GOOD.replace("SUCCESS\n", "SUCCESS\nAs I said.\n")).ok


@pytest.mark.parametrize(
    ("role", "needed"),
    [
        ("fixer", ["CHANGES", "VERIFICATION"]),
        ("observer", ["OBSERVED"]),
        ("designer", ["SPECIFICATION"]),
        ("explorer", []),
    ],
)
def test_success_without_what_the_role_must_show_is_blocked(role: str, needed: list[str]) -> None:
    """D06, D05"""
    full = GOOD + "".join(f"\n{name}: something" for name in OWN.get(Role(role), ()))
    assert read_envelope(full, role).ok
    for name in needed:
        for text in (
            full.replace(f"\n{name}: something", ""),
            full.replace(f"\n{name}: some", "\nX"),
        ):
            found = read_envelope(text.replace("Xthing", f"{name}: "), role)
            assert not found.ok
            assert f"- {name} is missing or empty" in found.feedback
        partial = full.replace("SUCCESS", "PARTIAL").replace(f"\n{name}: something", "")
        assert read_envelope(partial, role).ok


def test_what_else_a_role_should_say_is_a_warning() -> None:
    """D05"""
    found = read_envelope(f"{GOOD}\nOBSERVED: red", "observer")
    assert (found.ok, found.warnings) == (True, ("EXPECTED is missing.", "DIFFERENCE is missing."))


def test_blocked_should_give_a_reason() -> None:
    """D05"""
    blocked = GOOD.replace("SUCCESS", "BLOCKED")
    assert read_envelope(blocked).warnings == ("REASON is missing.",)
    found = read_envelope(f"{blocked}\nREASON: no rights")
    assert (found.warnings, found.fields["REASON"]) == ((), "no rights")


def test_the_task_id_is_echoed_exactly() -> None:
    """D06"""
    assert read_envelope(f"TASK_ID: T-1.a\n{GOOD}", task_id="T-1.a").ok
    for said in (
        "",
        "TASK_ID: T-1\n",
        "TASK_ID: t-1.a\n",
        "TASK_ID: T-1.a b\n",
        " TASK_ID: T-1.a\n",
    ):
        found = read_envelope(said + GOOD, task_id="T-1.a")
        assert not found.ok
        assert "TASK_ID must be echoed exactly: T-1.a" in found.feedback


@pytest.mark.parametrize("role", Role)
def test_a_template_that_is_filled_in_is_ok_and_one_that_is_not_is_none(role: Role) -> None:
    """D04"""
    template = envelope_template(role, "T1")
    assert not read_envelope(template, role, task_id="T1").ok
    names = ["SUMMARY", *EXPECTED, *OWN.get(role, ())]
    values = dict.fromkeys(names, "one\nSTATUS: two") | {"STATUS": "SUCCESS"}
    found = read_envelope(fill_in(template, values), role, task_id="T1")
    assert (found.errors, found.warnings) == ((), ())
    assert found.summary == "one\n  STATUS: two"


@pytest.mark.parametrize("role", Role)
def test_a_hand_off_says_who_what_and_whether_files_may_change(role: Role) -> None:
    """D05b"""
    prompt = hand_off(
        role, "Find it.", context="It was here.", constraints="Be quick.", task_id="T1"
    )
    lines = prompt.splitlines()
    assert lines[0] == f"You are the {role.value.capitalize()} specialist."
    assert ("You MAY modify files" in prompt) is (role is Role.FIXER)
    assert ("Do not modify any files." in lines) is (role is not Role.FIXER)
    for part in ("TASK\nFind it.", "KNOWN CONTEXT\nIt was here.", "CONSTRAINTS\nBe quick."):
        assert part in prompt
    assert envelope_template(role, "T1") in prompt
    assert task_id_of(prompt) == "T1"
    assert "CONTEXT" not in hand_off(role, "Find it.")


@pytest.mark.parametrize(
    "prompt",
    ["", "do TASK_ID: x", "TASK_ID: a b", "TASK_ID: -a", "TASK_ID:", "TASK_ID: a\nTASK_ID: b"],
)
def test_a_prompt_names_one_task_on_a_line_of_its_own(prompt: str) -> None:
    """D06"""
    with pytest.raises(ValueError, match=r"TASK_ID|task id"):
        task_id_of(prompt)


@pytest.mark.parametrize("wrong", ["a/b", "", ".a", "a\n", "ä"])
def test_a_task_id_that_is_not_allowed_is_refused(wrong: str) -> None:
    """D06"""
    with pytest.raises(ValueError, match="must begin with"):
        hand_off("fixer", "x", task_id=wrong)
    with pytest.raises(ValueError, match="Role"):
        hand_off("boss", "x")


@given(text=st.text() | st.lists(st.sampled_from([*GOOD.splitlines(), "```", "x"])).map("\n".join))
def test_whatever_is_read_is_ok_only_with_a_status_and_a_summary(text: Any) -> None:
    """D03"""
    found = read_envelope(text, "explorer")
    if found.ok:
        assert found.status is not None
        assert found.summary
        assert text.count("STATUS: SUCCESS") == 1
