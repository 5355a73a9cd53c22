"""What counts as a change, and which claims it outdates."""

import threading
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import Approval, ApprovalRequest
from mini_harness.clock import RealClock
from mini_harness.events import Event
from mini_harness.evidence import Standing, Verify, standing_of
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.parallel import ParallelReads
from mini_harness.policy import Policy
from mini_harness.protocol import Final
from mini_harness.rules import Rule, Verdict
from mini_harness.run import Run, Status
from mini_harness.session import Session
from mini_harness.sync import run_sync
from mini_harness.table import line_of
from mini_harness.timeout import Timeout
from mini_harness.tools.function import tool
from mini_harness.tools.shell import Bash
from tests.claiming import TOOLS, claim, final, finding, note, verified
from tests.loops import call, go_on, harness, play, refold, tool_messages
from tests.sessions import new

VERIFIED, UNVERIFIED = Standing.VERIFIED, Standing.UNVERIFIED
SEEN = call("read", "c1", path="src/a.py")


def outdated(run: Run) -> bool:
    """Whether the claim is outdated. Else it must have been accepted."""
    if standing_of(run) is VERIFIED:
        return False
    assert finding(run) == "outdated"
    return True


@pytest.mark.parametrize(
    ("about", "changed", "is_outdated"),
    [
        (["src/a.py"], "src/a.py", True),
        (["src/a.py"], "src/b.py", False),
        (["src/a.py"], "src", True),
        (["src"], "src/a.py", True),
        (["./src/../src"], "src/a.py", True),
        (["src"], "src2/a.py", False),
        (["src/b.py", "src/a.py"], "src/a.py", True),
        (["."], "docs/x.md", True),
        (["~"], "src/a.py", False),
        ([], "docs/x.md", True),
        (["a\0b"], "docs/x.md", True),
    ],
)
def test_a_change_outdates_what_speaks_of_its_paths(
    about: list[str], changed: str, is_outdated: bool, tmp_path: Path
) -> None:
    """A26: a folder contains its files; without ``about`` a claim speaks of everything"""
    turns = [SEEN, call("edit", "c2", path=changed), final(claim("c1", about=about))]
    assert outdated(verified(*turns, cwd=tmp_path)) is is_outdated


def test_paths_are_compared_with_their_links_followed(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    Path(tmp_path / "link").symlink_to("src")
    turns = [SEEN, call("edit", path="link/a.py"), final(claim("c1", about=["src/a.py"]))]
    assert outdated(verified(*turns, cwd=tmp_path))
    turns = [SEEN, call("edit", path=str(tmp_path / "src")), final(claim("c1", about=["link"]))]
    assert outdated(verified(*turns, cwd=tmp_path))


def test_a_call_is_not_older_than_itself_nor_than_what_came_before() -> None:
    turns = [call("edit", path="a"), call("edit", "c1", path="a"), final(claim("c1"))]
    assert not outdated(verified(*turns))


@pytest.mark.parametrize("change", [call("deploy"), call("bash", command="true")])
def test_a_change_without_a_path_may_have_changed_everything(change: Any, tmp_path: Path) -> None:
    """A26: also any shell line, of which only the folder is known where it starts"""
    turns = [SEEN, change, final(claim("c1", about=["src/a.py"]))]
    assert outdated(verified(*turns, tools=[*TOOLS, Bash()], cwd=tmp_path))


def test_a_tool_that_only_checks_changes_nothing() -> None:
    """A26: as the harness declares it, and nobody else"""
    turns = [SEEN, call("check"), final(claim("c1"))]
    assert outdated(verified(*turns))
    assert not outdated(verified(*turns, checks=["check"]))
    with pytest.raises(TypeError, match=r"\['check'\]"):
        Verify(checks="check")


def test_a_call_that_never_began_changes_nothing() -> None:
    no_tool, wrong = call("no_tool"), call("edit", no="path")
    deny = Policy(rules=[Rule("no-edit", Verdict.DENY, tool="edit")], mode="full_auto")
    turns = [SEEN, no_tool, wrong, call("edit", path="src/a.py"), final(claim("c1"))]
    assert not outdated(verified(*turns, layers=[deny]))


def test_what_cannot_say_whether_it_only_reads_has_changed_something() -> None:
    """Could not judge is never yes: the tool fails to say it, or isn't there any more."""

    class Vague(type(TOOLS[0])):  # type: ignore[misc]
        def is_read_only(self, arguments: Any) -> bool:
            raise ValueError("who knows")

    vague = Vague(lambda: "ok", "vague", "Be vague.", paths=())
    assert outdated(verified(SEEN, call("vague"), final(claim("c1")), tools=[*TOOLS, vague]))
    first = play([SEEN, call("check"), RuntimeError("down")], TOOLS, layers=[Verify()]).run
    assert first.status is Status.FAILED
    later = go_on(first, [final(claim("c1"))] * 4, TOOLS[:1], layers=[Verify(checks=["other"])])
    assert outdated(later.run)


def test_what_a_person_edited_counts_as_it_ran(tmp_path: Path) -> None:
    """A26: the proposal named another file than the one that was changed"""

    async def edits(request: ApprovalRequest) -> Approval:
        return Approval(True, request.digest, {"path": "src/a.py"})

    rules = [Rule("ask", Verdict.REQUIRE_APPROVAL, tool="edit")]
    ask = Policy(rules=rules, mode="full_auto", approver=edits)
    turns = [SEEN, call("edit", path="b.py"), final(claim("c1", about=["src/a.py"]))]
    assert outdated(verified(*turns, layers=[ask], cwd=tmp_path))
    assert not outdated(verified(*turns, cwd=tmp_path))


def test_what_was_given_up_and_goes_on_outdates_also_what_came_later() -> None:
    """A thread can't be ended: its change may come after the check."""
    may_end = threading.Event()

    @tool(blocking=True, paths=("path",))
    def slow(path: str) -> str:
        """Change a file, some day."""
        may_end.wait(30)
        return "changed"

    turns = [call("slow", path="src/a.py"), SEEN, final(claim("c1"))]
    try:
        layers = [Verify(), Timeout(0.05)]
        run = play([*turns, *turns[-1:] * 3], [*TOOLS, slow], layers=layers, clock=RealClock()).run
    finally:
        may_end.set()
    assert outdated(run)
    assert "may still change" in note(run)["told"]


class Died(Exception):
    """The process ended here."""


def dies(event: Event) -> None:
    if event.type == "tool_result" and event.data["tool"] == "edit":
        raise Died


def live(
    session: Session, run: Run | None, turns: list[Any], *layers: Layer, dying: Any = ()
) -> Run:
    harness = Harness(
        ScriptedModel(turns),
        TOOLS,
        layers=[Verify(), *layers],
        sinks=[*dying, session],
        clock=session.clock(),
    )
    return run_sync(harness.resume(run) if run else harness.run("go"))


def after_a_crash(root: Path, *layers: Layer, cites: str = "c1") -> Run:
    """Something was read, then changed; the process died before that was recorded."""
    session = new(root)
    with pytest.raises(Died):
        live(session, None, [SEEN, call("edit", "c2", path="src/a.py")], dying=[dies])
    session.close()
    with Session.open("s1", root) as again:
        return live(again, again.run(), [final(claim(cites))] * 4, *layers)


def test_a_change_before_a_crash_is_one_also_if_it_is_refused_afterwards(tmp_path: Path) -> None:
    """A26: the outcome unknown, or denied, and yet it may have had its effect"""
    assert outdated(after_a_crash(tmp_path / "a"))
    deny = Policy(rules=[Rule("no-edit", Verdict.DENY, tool="edit")], mode="full_auto")
    run = after_a_crash(tmp_path / "b", deny)
    assert tool_messages(run)[-1]["outcome"] == "denied"
    assert outdated(run)


def test_a_call_whose_outcome_nobody_knows_proves_nothing(tmp_path: Path) -> None:
    """A26: could not judge is its own outcome"""
    run = after_a_crash(tmp_path, cites="c2")
    assert (finding(run), note(run)["findings"][0]["holds"]) == ("outcome_unknown", None)


def test_after_a_resume_it_verifies_the_same(tmp_path: Path) -> None:
    """A26: only what was recorded counts, so another process finds the same"""
    turns = [SEEN, call("edit", "c2", path="b"), RuntimeError("down")]
    good = final(claim("c1", quote="src/a.py", about=["src"]), claim("c2"))
    for answer, reached in ((good, VERIFIED), (final(claim("c1"), claim("c2")), UNVERIFIED)):
        session = new(tmp_path / reached)
        live(session, None, turns)
        session.close()
        with Session.open("s1", tmp_path / reached) as again:
            run = live(again, again.run(), [answer] * 4)
            assert standing_of(run) is reached
            assert [each["holds"] for each in note(run)["findings"]] == [reached is VERIFIED, True]
        with Session.open("s1", tmp_path / reached) as again:
            assert standing_of(again.run()) is reached


def test_each_verification_is_recorded_and_told() -> None:
    turns = [SEEN, final(claim("c9", "It \x1b[1mworks.")), final(claim("c1"))]
    played = play(turns, TOOLS, layers=[Verify()])
    events = [event for event in played.events if event.type == "verification"]
    assert [event.data["accepted"] for event in events] == [False, True]
    assert 'unverified: 0 of 1 claims hold. "It \\x1b[1mworks.": This' in line_of(events[0])
    assert str(events[1]).endswith("verified: 1 of 1 claims hold.")
    assert standing_of(refold(played.events)) is VERIFIED


@pytest.mark.parametrize(
    ("quote", "found"), [("of hunter2hunter2", "holds"), ("hunter2hunter2", "blank_quote")]
)
def test_a_secret_is_compared_as_it_was_recorded(
    quote: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A26: and a mask alone could stand for any secret; it stands inside of ParallelReads here"""
    monkeypatch.setenv("SOME_API_KEY", "hunter2hunter2")
    turns = [call("read", "c1", path="hunter2hunter2"), *[final(claim("c1", quote=quote))] * 4]
    layers = [ParallelReads(), Verify(), Policy(mode="full_auto")]
    player, events = harness(turns, TOOLS, layers=layers)
    run = player.run_sync("go")
    assert finding(run) == found
    assert (standing_of(run) is VERIFIED) is (found == "holds")
    assert not any("hunter2" in event.to_json() for event in events)


@pytest.mark.parametrize(
    "claims",
    [
        "c1",
        [None],
        [{}],
        [{"says": "x"}],
        [claim("")],
        [claim("c1", " ")],
        [claim("c1", exit_code=True)],
        [claim("c1", exit_code="0")],
        [claim("c1", exit_code=0.0)],
        [claim("c1", about="src")],
        [claim("c1", about=[""])],
        [claim("c1", quote=["content"])],
        [claim("c1", holds=True)],
        [claim("c1")] * 101,
    ],
)
def test_a_claim_that_cannot_be_read_is_none(claims: Any) -> None:
    """Could not judge is never yes."""
    run = verified(SEEN, Final({"answer": "x", "claims": claims}), require=UNVERIFIED)
    assert (run.output, standing_of(run), finding(run)) == ("x", UNVERIFIED, "malformed")


@pytest.mark.parametrize("form", ["{}", "\n {} ", "```json\n{}\n```", "```\n{}```"])
def test_claims_may_come_as_text(form: str) -> None:
    text = '{"answer": [1], "claims": [{"says": "so", "call_id": "c1"}]}'
    run = verified(SEEN, Final(form.replace("{}", text)))
    assert (run.output, standing_of(run)) == ([1], VERIFIED)
