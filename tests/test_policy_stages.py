"""A run that goes on under other policies, in other folders, read back, and with other people.

Whatever follows whatever: what ran was judged by each policy that was there, and where one asks,
somebody said yes to exactly this: this call, these arguments, this rule, in this folder.
"""

import asyncio
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_harness.approval import Approval, ApprovalRequest
from mini_harness.events import Event
from mini_harness.frozen import canonical
from mini_harness.loop import Harness
from mini_harness.policy import Policy, Rule, Verdict
from mini_harness.run import Run, Status
from mini_harness.tools.call import Call, InvalidArguments
from mini_harness.tools.function import tool
from tests.loops import DONE, call, check_history, harness, refold, turn
from tests.test_policy_property import ALLOWED, BEHAVIOURS, CALL, RULE, Approver, Workshop

pytestmark = pytest.mark.once

LINES = (
    "ls", "ls -la", "git -C . push", "rm -rf a", "echo $(ls)", "cat secret/a", "cd a && ls",
    "echo password=hunter2-hunter2", "sh x", "'",
)  # fmt: skip
_SHELL = st.builds(lambda line: ("shell", {"line": line}), st.sampled_from(LINES))
_CALLS = st.one_of(CALL, _SHELL, _SHELL)
_COMMANDS = st.sampled_from((None, None, "git push *", "ls *", "echo *", "*"))


def _rule_about_commands(parts: dict[str, Any], name: str | None, command: Any) -> dict[str, Any]:
    """A rule that allows can't bound both."""
    bounded = {"path": None} if command and parts["verdict"] is Verdict.ALLOW else {}
    return {**parts, "tool": name or parts["tool"], "command": command, **bounded}


_RULES = st.lists(
    st.builds(
        _rule_about_commands,
        RULE, st.sampled_from((None, None, "shell")), _COMMANDS,
    ), max_size=2,
).map(lambda found: [Rule(f"rule-{at}", **parts) for at, parts in enumerate(found)])  # fmt: skip
_POLICY = st.fixed_dictionaries(
    {
        "allowed_tools": st.one_of(st.none(), st.none(), st.none(), ALLOWED),
        "rules": _RULES,
        "mode": st.sampled_from(("default", "default", "default", "full_auto", "plan")),
    }
)
_PERSON = st.sampled_from(
    ("yes",) * 5 + ("always", "always", "edit", "edit to .env", "no", "nothing")
)


class Stage(NamedTuple):
    """One harness for the run: its policies, none at times, and who answers before and in it."""

    policies: list[dict[str, Any]]
    folder: str
    behaviours: list[str] | None
    person: str
    reread: bool


_BEHAVED = st.lists(st.sampled_from(("yes", "yes", "always", "edit", *BEHAVIOURS)), max_size=4)


@st.composite
def _stages(draw: st.DrawFn) -> list[Stage]:
    """Some harnesses in a row. Mostly the same policies come again."""
    policies = draw(st.lists(_POLICY, min_size=1, max_size=2))
    known = st.sampled_from([policies, policies, policies, policies[:1], policies[::-1], []])
    stage = st.builds(
        Stage,
        known,
        st.sampled_from("aaab"),
        st.one_of(st.none(), st.none(), st.none(), _BEHAVED),
        _PERSON,
        st.booleans(),
    )
    first = draw(stage)._replace(policies=policies)
    return [first, *draw(st.lists(stage, min_size=2, max_size=6))]


_LAST = Stage([{}], "a", None, "nothing", False)


class Yes(NamedTuple):
    call_id: str
    tool: str
    proposed: str
    arguments: str
    rule: str
    folder: str
    always: bool


class Did(NamedTuple):
    stage: int
    call_id: str
    tool: str
    arguments: str


class Told(Approver):
    """An approver whose every yes is kept, with all that it was a yes to."""

    def __init__(self, behaviours: list[str], folder: str, said: list[Yes]) -> None:
        super().__init__(behaviours)
        self._folder, self._said = folder, said

    async def __call__(self, request: ApprovalRequest) -> Any:
        answer = await super().__call__(request)
        if type(answer) is Approval and answer.approved is True:
            keep(self._said, request, self._folder, answer.arguments, answer.remember)
        return answer


def keep(said: list[Yes], request: ApprovalRequest, folder: str, edited: Any, always: bool) -> None:
    proposed = canonical(request.arguments)
    arguments = proposed if edited is None else canonical(edited)
    named = request.call_id, request.tool, proposed, arguments
    said.append(Yes(*named, request.rule, folder, always))


class World:
    """One run, and all that was ever done and said in it."""

    def __init__(self, root: Path, turns: list[list[tuple[str, Any]]]) -> None:
        self.root, self.stage = root, 0
        self.did: list[Did] = []
        self.said: list[Yes] = []
        workshop = Workshop()

        @tool(command="line", paths=())
        def shell(line: str) -> str:
            """Run a line."""
            return workshop._did("shell", line=line)

        self.tools = {each.name: each for each in [*workshop.tools, shell]}
        self._workshop = workshop
        self.proposed = {
            f"{at}-{place}": call(name, f"{at}-{place}", **arguments)
            for at, calls in enumerate(turns)
            for place, (name, arguments) in enumerate(calls)
        }
        made = [turn(*(self.proposed[f"{at}-{p}"] for p in range(len(calls))))
                for at, calls in enumerate(turns)]  # fmt: skip
        self.events: list[Event] = []
        self.model = harness([*made, DONE])[0].model

    def harness(self, stage: Stage) -> Harness:
        folder = self.root / stage.folder
        asks = None if stage.behaviours is None else stage
        layers = []
        for parts in stage.policies:
            approver = asks and Told(asks.behaviours or [], stage.folder, self.said)
            layers.append(Policy(**parts, approver=approver, patience=0.02))
        made, self.events = harness([], self.tools.values(), layers=layers, cwd=folder,
                                    sinks=[self.keep_event])[0], self.events  # fmt: skip
        made.model = self.model
        return made

    def keep_event(self, event: Event) -> None:
        self.events.append(event)
        if event.type == "tool_start":
            self._started = event.data["call_id"]
        if event.type in ("tool_result", "tool_error") and len(self._workshop.ran):
            for name, arguments in self._workshop.ran:
                self.did.append(Did(self.stage, self._started, name, arguments))
            self._workshop.ran.clear()

    def answer(self, run: Run, person: str, folder: str) -> None:
        """What a person says to a paused run, before it goes on."""
        if run.status is not Status.PAUSED or person == "nothing":
            return
        if person == "no":
            return run.deny("no")
        request = ApprovalRequest.of(run)
        name = {"send": "to", "shell": "line"}.get(request.tool, "path")
        new = {"edit": "edited", "edit to .env": "cat .env"}.get(person)
        edited = None if new is None else {**request.arguments, name: new}
        keep(self.said, request, folder, edited, person == "always")
        return run.approve(edited, remember=person == "always")


def lived(world: World, stages: list[Stage]) -> Run:
    """The run through all stages. In the end, whatever is asked is answered with no."""
    player = world.harness(stages[0])
    run = asyncio.run(player.run("go"))
    for world.stage, (before, stage) in enumerate(itertools.pairwise(stages), 1):
        if run.status is Status.COMPLETED:
            return run
        run = refold(world.events) if stage.reread else run
        world.answer(run, stage.person, before.folder)
        player = world.harness(stage)
        try:
            asyncio.run(player.resume(run))
        except RuntimeError as error:
            assert "no policy of this harness took the answer" in str(error)
            assert not stage.policies
    while run.status is Status.PAUSED:
        run.deny("nobody is left")
        asyncio.run(player.resume(run))
    return run


def may_have_run(world: World, did: Did, stage: Stage) -> set[str]:
    """The arguments with which this call may have run, by all that was said."""
    folder = world.root / stage.folder
    found = {canonical(world.proposed[did.call_id].arguments)}
    answers = [yes for yes in world.said if yes.call_id == did.call_id]
    always = {(y.tool, y.arguments, y.rule) for y in world.said if y.always}
    for parts in stage.policies:
        known, found = found, set()
        for arguments in known:
            verdict, rule, _ = judged(world, did.tool, arguments, parts, folder)
            if verdict is Verdict.ALLOW:
                found.add(arguments)
            if verdict is Verdict.REQUIRE_APPROVAL and (did.tool, arguments, rule) in always:
                found.add(arguments)
            asked = arguments, rule, stage.folder
            found |= {y.arguments for y in answers if (y.proposed, y.rule, y.folder) == asked}
        found = {x for x in found if fits(world, did.tool, x)}
        denied = {x for x in found if judged(world, did.tool, x, parts, folder)[0] is Verdict.DENY}
        found -= denied
    return found


def fits(world: World, name: str, arguments: str) -> bool:
    """Whether these are arguments of the tool at all: people edit what they like."""
    try:
        Call(world.tools[name], "c", json.loads(arguments))
    except InvalidArguments:
        return False
    return True


def judged(world: World, name: str, arguments: str, parts: dict[str, Any], cwd: Path) -> Any:
    return Policy(**parts).judge(Call(world.tools[name], "c", json.loads(arguments)), cwd)


@given(
    turns=st.lists(st.lists(_CALLS, min_size=1, max_size=3), min_size=1, max_size=3),
    stages=_stages(),
)
@settings(max_examples=200, deadline=None)
def test_what_ran_was_allowed_by_every_policy_and_person_that_had_a_say(
    turns: Any, stages: list[Stage]
) -> None:
    """A08, B21, P04, P05"""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        for folder in "ab":
            (root / folder / "secret").mkdir(parents=True)
        (root / "a" / "link").symlink_to("secret", target_is_directory=True)
        world = World(root, turns)
        stages = [*stages, _LAST]
        run = lived(world, stages)
        check_history(run)
        assert run.status is Status.COMPLETED
        for did in world.did:
            allowed = may_have_run(world, did, stages[did.stage])
            assert did.arguments in allowed, (did, world.said)
    ids = [did.call_id for did in world.did]
    assert len(set(ids)) == len(ids), "each once"
