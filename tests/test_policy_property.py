"""Nothing runs that was denied or not approved, and what runs is what was approved.

Whole runs with the real harness: generated rules, calls and approvers that fail in every way.
"""

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.approval import Approval, ApprovalRequest
from mini_harness.frozen import canonical
from mini_harness.policy import Policy, Rule, Verdict
from mini_harness.run import Run, Status
from mini_harness.tools.base import BaseTool
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool
from tests.loops import DONE, call, check, harness, tool_messages, turn

pytestmark = pytest.mark.once

PATHS = (
    "a",
    "secret/a",
    "./secret/../secret/b",
    "link/a",
    ".env",
    "~/.ssh/x",
    "é/ü",
    "x\u202ey",
    "",
)


class Workshop:
    """Three tools that keep a list of what they really did."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, str]] = []

        @tool(read_only=True, paths=["path"])
        def look(path: str) -> str:
            """Look at a file."""
            return self._did("look", path=path)

        @tool(paths=["path"])
        def write(path: str, text: str) -> str:
            """Write a file."""
            return self._did("write", path=path, text=text)

        @tool
        def send(to: str, attach: list[str]) -> str:
            """Send files. It declares no paths, and meddles with its arguments."""
            said = self._did("send", to=to, attach=[*attach])
            attach.append("more")
            return said

        self.tools: list[BaseTool] = [look, write, send]

    def _did(self, name: str, **arguments: Any) -> str:
        self.ran.append((name, canonical(arguments)))
        return "done"


def _raises(_: Any) -> bool:
    raise LookupError("no idea")


CONDITIONS: tuple[Callable[[Any], Any] | None, ...] = (
    None, None, None, lambda _: True, lambda _: False, lambda _: "no", lambda _: 1,
    lambda _: None, _raises, lambda a: "a" in str(a),
)  # fmt: skip
RULE = st.fixed_dictionaries(
    {
        "verdict": st.sampled_from([*Verdict, Verdict.ALLOW, Verdict.REQUIRE_APPROVAL]),
        "tool": st.sampled_from(("*", "look", "write", "send", "s*", "nothing")),
        "path": st.sampled_from((None, None, "secret", "secret/**", "a", "**", "link/*")),
        "when": st.sampled_from(CONDITIONS),
    }
)
RULES = st.lists(RULE, max_size=5).map(
    lambda found: [Rule(f"rule-{number}", **parts) for number, parts in enumerate(found)]
)
CALL = st.one_of(
    st.builds(lambda path: ("look", {"path": path}), st.sampled_from(PATHS)),
    st.builds(
        lambda path, text: ("write", {"path": path, "text": text}),
        st.sampled_from(PATHS), st.text(max_size=4),
    ),
    st.builds(
        lambda to, attach: ("send", {"to": to, "attach": attach}),
        st.sampled_from(PATHS), st.lists(st.sampled_from(PATHS), max_size=2),
    ),
)  # fmt: skip
TURNS = st.lists(st.lists(CALL, min_size=1, max_size=3), min_size=1, max_size=3)
ALLOWED = st.none() | st.sets(st.sampled_from(("look", "write", "send")))
MODES = st.sampled_from(("default", "plan", "full_auto"))

# What an approver does with a request. "yes", "always" and "edit" are the only ways to say yes.
BEHAVIOURS = (
    "yes", "yes", "yes", "always", "edit", "edit to .env", "edit badly", "no", "nobody", "raise",
    "hang", "text", "one", "true", "wrong digest", "truthy", "junk", "cancelled", "a dict", "exit",
    "no and remember",
)  # fmt: skip


class Approver:
    """Behaves once in each way of a list, and keeps what it really said yes to."""

    def __init__(self, behaviours: list[str]) -> None:
        self._behaviours = iter(behaviours)
        self.approved: list[tuple[tuple[str, str], bool]] = []
        """What it said yes to, and whether for always."""

    async def __call__(self, request: ApprovalRequest) -> Any:
        behaviour = next(self._behaviours, "no")
        if behaviour == "hang":
            await asyncio.Event().wait()
        if behaviour == "raise":
            raise RuntimeError("the panel is broken")
        if behaviour == "cancelled":
            raise asyncio.CancelledError
        if behaviour in ("yes", "always"):
            self._said_yes(request, request.arguments, behaviour == "always")
            return request.approve(remember=behaviour == "always")
        if behaviour.startswith("edit"):
            return self._edit(request, behaviour)
        return _answer(request, behaviour)

    def _edit(self, request: ApprovalRequest, behaviour: str) -> Approval:
        path = ".env" if behaviour == "edit to .env" else "edited"
        name = "to" if request.tool == "send" else "path"
        arguments = {**request.arguments, name: 7 if behaviour == "edit badly" else path}
        if behaviour == "edit":
            self._said_yes(request, arguments, False)
        return request.approve(arguments)

    def _said_yes(self, request: ApprovalRequest, arguments: Any, always: bool) -> None:
        self.approved.append(((request.tool, canonical(arguments)), always))


def _answer(request: ApprovalRequest, behaviour: str) -> Any:
    """Everything that isn't a yes to this request."""
    answers = {
        "no": request.deny("no"),
        "nobody": None,
        "no and remember": Approval(False, request.digest, remember=True),
        "text": "yes",
        "one": 1,
        "true": True,
        "wrong digest": Approval(True, "0" * 64),
        "truthy": Approval("no", request.digest),  # type: ignore[arg-type]
        "junk": object(),
        "a dict": {"approved": True, "digest": request.digest},
        "exit": [Approval(True, request.digest)],
    }
    return answers[behaviour]


class Played(NamedTuple):
    run: Run
    workshop: Workshop
    approver: Approver
    proposed: dict[str, Call]


def played(
    cwd: Path, turns: list[list[tuple[str, Any]]], behaviours: list[str], **parts: Any
) -> Played:
    """A run to its end. Whenever it pauses, a person says no."""
    workshop, approver = Workshop(), Approver(behaviours)
    policy = Policy(**parts, approver=approver, patience=0.02)
    numbered = [
        [call(name, f"{at}-{place}", **arguments) for place, (name, arguments) in enumerate(calls)]
        for at, calls in enumerate(turns)
    ]
    player, events = harness(
        [*(turn(*calls) for calls in numbered), DONE],
        workshop.tools,
        layers=[policy],
        cwd=cwd,
    )
    run = asyncio.run(player.run("go"))
    while run.status is Status.PAUSED:
        run.deny("nobody decided")
        asyncio.run(player.resume(run))
    check(run, events)
    assert run.status is Status.COMPLETED
    tools = {each.name: each for each in workshop.tools}
    calls = [each for calls in numbered for each in calls]
    made = {each.call_id: Call(tools[each.name], each.call_id, each.arguments) for each in calls}
    return Played(run, workshop, approver, made)


def folder_with_a_link(name: str) -> Path:
    cwd = Path(name)
    (cwd / "secret").mkdir()
    (cwd / "link").symlink_to("secret", target_is_directory=True)
    return cwd


@given(
    turns=TURNS,
    rules=RULES,
    allowed=ALLOWED,
    mode=MODES,
    behaviours=st.lists(st.sampled_from(BEHAVIOURS), max_size=9),
)
@settings(max_examples=250)
def test_nothing_runs_that_was_denied_or_not_approved(
    turns: Any, rules: list[Rule], allowed: Any, mode: str, behaviours: list[str]
) -> None:
    """A08, B21, P04, P05"""
    with tempfile.TemporaryDirectory() as name:
        cwd = folder_with_a_link(name)
        parts: dict[str, Any] = {"allowed_tools": allowed, "rules": rules, "mode": mode}
        found = played(cwd, turns, behaviours, **parts)
        judge = Policy(**parts).judge
        verdicts = {each: judge(made, cwd)[0] for each, made in found.proposed.items()}

    expected = []
    answers = iter(found.approver.approved)
    always: set[tuple[str, str]] = set()
    for seen in tool_messages(found.run):
        made = found.proposed[seen["call_id"]]
        proposed = made.name, canonical(made.arguments)
        verdict = verdicts[seen["call_id"]]
        if seen["is_error"]:
            assert seen["outcome"] == "denied"
            assert verdict is not Verdict.ALLOW
            continue
        assert verdict is not Verdict.DENY
        if verdict is Verdict.ALLOW or proposed in always:
            expected.append(proposed)
            continue
        said, for_always = next(answers)
        always |= {said} if for_always else set()
        expected.append(said)
    assert found.workshop.ran == expected, "byte for byte, in order, each once"
    assert next(answers, None) is None, "whatever was approved has run"


@given(calls=st.lists(CALL, min_size=1, max_size=4), rules=RULES, allowed=ALLOWED, mode=MODES)
@settings(max_examples=150)
def test_the_order_of_rules_changes_no_verdict(
    calls: Any, rules: list[Rule], allowed: Any, mode: str
) -> None:
    """A23, B20"""
    tools = {each.name: each for each in Workshop().tools}
    with tempfile.TemporaryDirectory() as name:
        cwd = folder_with_a_link(name)
        for tool_name, arguments in calls:
            made = Call(tools[tool_name], "c", arguments)
            found = {
                Policy(allowed, rules=order, mode=mode).judge(made, cwd).verdict
                for order in (rules, rules[::-1], rules[1:] + rules[:1], sorted(rules, key=str))
            }
            assert len(found) == 1


@given(rule=RULE, calls=st.lists(CALL, min_size=1, max_size=4), rules=RULES)
@settings(max_examples=150)
def test_one_more_rule_that_restricts_never_permits_more(
    rule: dict[str, Any], calls: Any, rules: list[Rule]
) -> None:
    """A23: the strictest counts."""
    tools = {each.name: each for each in Workshop().tools}
    for verdict in (Verdict.REQUIRE_APPROVAL, Verdict.DENY):
        more = Rule("more", **{**rule, "verdict": verdict})
        for tool_name, arguments in calls:
            made = Call(tools[tool_name], "c", arguments)
            before = Policy(rules=rules).judge(made, ".").verdict
            after = Policy(rules=[*rules, more]).judge(made, ".").verdict
            order = [Verdict.ALLOW, Verdict.REQUIRE_APPROVAL, Verdict.DENY]
            assert order.index(after) >= order.index(before)
