"""Whatever is read, changed and claimed in whatever order: VERIFIED only if it is so."""

from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.evidence import Standing, standing_of
from tests.claiming import claim, final, note, verified
from tests.loops import call

PATHS = ("a", "b", "d", "d/x", "d/y", "dd")


class Op(NamedTuple):
    """One call. Without a path, it is one that names none."""

    tool: str
    path: str | None


class Said(NamedTuple):
    """A claim: which call it cites, what it is about, and whether its quote is a true one."""

    cites: int
    about: tuple[str, ...]
    quotes: str | None


paths = st.sampled_from(PATHS)
ops = st.one_of(
    st.builds(Op, st.sampled_from(["read", "edit", "edit", "break_off"]), paths),
    st.builds(Op, st.sampled_from(["deploy", "check"]), st.none()),
)
said = st.builds(
    Said,
    st.integers(0, 8),
    st.lists(paths, max_size=2).map(tuple),
    st.sampled_from([None, "true", "false", " "]),
)


def outputs(op: Op) -> str:
    words = {"read": "content of", "edit": "changed", "deploy": "is live", "check": "3 passed"}
    return f"{words[op.tool]} {op.path}" if op.path else words[op.tool]


def concerns(changed: str | None, about: tuple[str, ...]) -> bool:
    """Written without paths: as a folder's name is the beginning of its files' names."""
    if changed is None or not about:
        return True
    return any(
        f"{one}/".startswith(f"{changed}/") or f"{changed}/".startswith(f"{one}/") for one in about
    )


def is_so(made: list[Op], one: Said) -> bool:
    """What a person would say who has seen it all."""
    if one.cites >= len(made) or made[one.cites].tool == "break_off":
        return False
    if one.quotes in ("false", " "):
        return False
    later = made[one.cites + 1 :]
    return not any(
        op.tool in ("edit", "break_off", "deploy") and concerns(op.path, one.about) for op in later
    )


@settings(max_examples=200)
@given(made=st.lists(ops, max_size=7), claims=st.lists(said, max_size=3))
def test_it_is_verified_exactly_if_somebody_who_saw_it_all_agrees(
    made: list[Op], claims: list[Said]
) -> None:
    """A26"""
    turns: list[Any] = []
    for number, op in enumerate(made):
        arguments = {} if op.path is None else {"path": op.path}
        turns.append(call(op.tool, f"c{number}", **arguments))
    wires = []
    for one in claims:
        real = made[one.cites] if one.cites < len(made) else Op("deploy", None)
        true = "" if real.tool == "break_off" else outputs(real)
        quote = {"true": true, "false": "never said", " ": " "}.get(one.quotes or "")
        wires.append(claim(f"c{one.cites}", about=list(one.about), quote=quote))
    run = verified(*turns, final(*wires), checks=["check"])
    truth = [is_so(made, one) for one in claims]
    assert (standing_of(run) is Standing.VERIFIED) is (bool(truth) and all(truth))
    assert [each["holds"] is True for each in note(run)["findings"]] == truth
