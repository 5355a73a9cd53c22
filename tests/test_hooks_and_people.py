"""Hooks where a person decides, where a run is taken up again, and where something breaks."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import Approval, ApprovalRequest
from mini_harness.events import Event, EventType
from mini_harness.hooks import Block, Hook, HookInput, Hooks
from mini_harness.layer import Layer, Pause
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.parallel import ParallelReads
from mini_harness.policy import Policy
from mini_harness.protocol import Final
from mini_harness.run import Run, RunIsBusy, Status
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.function import tool
from mini_harness.trace import Trace
from tests.ears import ASK, DEPLOY, NOTICE, POST, PRE, PROMPT, STOP, Ear, Farm, noted, odd, on, told
from tests.loops import DONE, call, check, go_on, harness, kinds, outcomes, play, refold, turn


def test_a_person_is_told_when_the_run_pauses_and_the_post_hook_waits() -> None:
    """B29: the question itself is the message"""
    ear, farm = Ear(), Farm()
    layers = [on(ear, NOTICE, POST), Policy(rules=[ASK])]
    run, events = play([DEPLOY, DONE], farm.tools, layers=layers)
    assert (run.status, ear.events) == (Status.PAUSED, ["notification"])
    assert ear.heard[0].message == str(ApprovalRequest.of(run))
    assert (ear.heard[0].tool, ear.heard[0].call_id) == ("deploy", "c1")
    assert kinds(events)[-2:] == ["hook", "pause"]
    run.approve()
    go_on(run, [DONE], farm.tools, layers=layers)
    assert (farm.done, ear.events) == (["b1"], ["notification", "post_tool_use"])


def test_a_person_is_told_of_any_pause_at_any_seam() -> None:
    class Waits(Layer):
        async def decide(self, run: Run, view: Any, next: Any) -> Any:
            raise Pause(budget="spent")

    class Wonders(Layer):
        async def finish(self, run: Run, final: Final, next: Any) -> Any:
            raise Pause()

    for layer, message in ((Waits(), "{'budget': 'spent'}"), (Wonders(), "{}")):
        ear = Ear()
        run, _ = play([DONE], layers=[on(ear, NOTICE), layer])
        assert run.status is Status.PAUSED
        assert [given.message for given in ear.heard] == [f"The run is paused: {message}"]


def test_a_notification_blocks_nothing() -> None:
    ears = [Ear(Block("no")), Ear()]
    layers = [Hooks([Hook(NOTICE, each) for each in ears]), Policy(rules=[ASK])]
    run, events = play([DEPLOY], Farm().tools, layers=layers)
    assert run.status is Status.PAUSED
    assert [note["result"] for note in noted(events)] == ["failed", "passed"]
    assert noted(events)[0]["reason"] == "A notification can't block. It said: no"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_person_is_told_before_an_approver_asks(kind: str) -> None:
    """B09: the notification, then the question"""
    log: list[str] = []

    def note(given: HookInput) -> None:
        log.append(f"told: {given.message.splitlines()[0]}")

    def ask(request: ApprovalRequest) -> Approval:
        log.append("asked")
        return request.approve()

    async def ask_later(request: ApprovalRequest) -> Approval:
        return ask(request)

    hooks, farm = on(note, NOTICE), Farm()
    approver = hooks.announcing(ask if kind == "sync" else ask_later)
    policy = Policy(rules=[ASK], approver=approver, patience=30)
    _, events = play([DEPLOY, DONE], farm.tools, layers=[hooks, policy])
    assert log == ["told: May deploy run?", "asked"]
    assert farm.done == ["b1"]
    approval = next(event.data for event in events if event.type is EventType.APPROVAL)
    assert approval["by"] == ("ask" if kind == "sync" else "ask_later")


def test_a_person_is_told_once_of_what_an_approver_leaves_undecided() -> None:
    ear = Ear()
    hooks = on(ear, NOTICE)
    layers = [hooks, Policy(rules=[ASK], approver=hooks.announcing(lambda request: None))]
    run, _ = play([DEPLOY], Farm().tools, layers=layers)
    assert (run.status, len(ear.heard)) == (Status.PAUSED, 1)


def test_of_several_calls_side_by_side_each_is_announced() -> None:
    ear = Ear()
    hooks = on(ear, NOTICE)

    @tool(read_only=True, paths=[])
    def peek(at: str) -> str:
        """Look."""
        return at

    rules = [odd(ASK.__class__)("ask", ASK.verdict, "peek")]
    approver = hooks.announcing(lambda request: request.approve())
    layers = [ParallelReads(), hooks, Policy(rules=rules, approver=approver)]
    turns = [turn(*(call("peek", n, at=n) for n in "abc")), DONE]
    run, _ = play(turns, [peek], layers=layers)
    assert sorted(given.call_id for given in ear.heard) == ["a", "b", "c"]
    assert outcomes(run) == [("a", "ok"), ("b", "ok"), ("c", "ok")]


@pytest.mark.parametrize("inside", [True, False])
def test_an_announced_question_outside_of_its_hooks_is_answered_with_no(inside: bool) -> None:
    """Rule 1: who wasn't told can't have agreed"""
    hooks, farm = on(Ear(), NOTICE), Farm()
    policy = Policy(rules=[ASK], approver=hooks.announcing(lambda request: request.approve()))
    layers: list[Layer] = [policy, hooks] if inside else [policy]
    run, _ = play([DEPLOY, DONE], farm.tools, layers=layers)
    assert (farm.done, outcomes(run)) == ([], [("c1", "denied")])
    assert "put Hooks outside" in told(run)


def test_a_run_that_has_no_hooks_around_it_borrows_none() -> None:
    """Neither those of the call in which it runs, nor those of a run before it"""
    hooks, farm, answers = on(Ear(), NOTICE), Farm(), [None]

    def decide(request: ApprovalRequest) -> Approval | None:
        return answers.pop() if answers else request.approve()

    policy = Policy(rules=[ASK], approver=hooks.announcing(decide))

    async def bare() -> Run:
        player, _ = harness([DEPLOY, DONE], farm.tools, layers=[policy])
        return await player.run("inner")

    @tool(read_only=True, paths=[])
    async def inside() -> str:
        """Run a harness of its own."""
        return told(await bare())

    async def main() -> tuple[Run, Run]:
        turns = [call("inside", "c1"), DONE]
        player, _ = harness(turns, [inside], layers=[hooks, Policy()])
        outer = await player.run("outer")
        with_hooks, _ = harness([DEPLOY, DONE], farm.tools, layers=[hooks, policy])
        await with_hooks.run("before")
        return outer, await bare()

    outer, after = asyncio.run(main())
    assert "put Hooks outside" in told(outer)
    assert "put Hooks outside" in told(after)
    assert (farm.done, answers) == ([], [])


def test_a_call_that_was_paused_is_judged_again_right_before_it_could_run() -> None:
    """Documented: what let it through before the pause doesn't count after it"""
    farm, ear = Farm(), Ear(None, Block("Too late."))
    layers = [on(ear, PRE, POST), Policy(rules=[ASK])]
    player, events = harness([DEPLOY, DONE], farm.tools, layers=layers)
    run = asyncio.run(player.run("go"))
    run.approve()
    asyncio.run(player.resume(run))
    check(run, events)
    assert ear.events == ["pre_tool_use", "pre_tool_use", "post_tool_use"]
    assert (farm.done, outcomes(run), run.answer) == ([], [("c1", "denied")], None)
    assert told(run).endswith("Too late.")
    assert "approval" not in kinds(events)


def test_what_ran_after_an_edit_is_what_the_post_hook_learns() -> None:
    """The hook that formats the file must not format the one that was proposed"""
    farm, ear, inner = Farm(), Ear(), Ear()
    layers = [on(ear, PRE, POST), Policy(rules=[ASK]), on(inner, PRE, POST)]
    run, _ = play([DEPLOY, DONE], farm.tools, layers=layers)
    run.approve({"build": "b2"})
    go_on(run, [DONE], farm.tools, layers=layers)
    assert farm.done == ["b2"]
    assert [dict(given.arguments) for given in ear.heard] == [
        *({"build": "b1"}, {"build": "b1"}, {"build": "b2"}),
    ]
    assert [dict(given.arguments) for given in inner.heard] == [{"build": "b2"}] * 2


def test_of_a_blocked_call_the_post_hook_learns_what_was_proposed_whatever_was_approved() -> None:
    """It ran with nothing, so not with what a person made of it before a crash"""
    farm, ear = Farm(), Ear(None, None, None, Block("Too late."))
    layers = [on(ear, PRE, POST), Policy(rules=[ASK])]
    player, events = harness([DEPLOY, DONE], farm.tools, layers=layers)
    run = asyncio.run(player.run("go"))
    run.approve({"build": "b2"})
    asyncio.run(player.resume(run))
    approved = next(n for n, event in enumerate(events) if event.type is EventType.APPROVAL)
    crashed = refold(events[: approved + 1])
    go_on(crashed, [DONE], farm.tools, layers=layers)
    assert (ear.events[-2:], outcomes(crashed)) == ([PRE, POST], [("c1", "denied")])
    assert dict(ear.heard[-1].arguments) == {"build": "b1"}


def test_inside_the_policy_a_hook_judges_what_a_person_made_of_a_call() -> None:
    farm = Farm()

    def guard(given: HookInput) -> Block | None:
        return Block("Never b2.") if given.arguments["build"] == "b2" else None

    layers = [Policy(rules=[ASK]), on(guard, PRE)]
    run, _ = play([DEPLOY, DONE], farm.tools, layers=layers)
    run.approve({"build": "b2"})
    go_on(run, [DONE], farm.tools, layers=layers)
    assert (farm.done, told(run)[-9:]) == ([], "Never b2.")


def test_a_call_that_may_have_run_before_a_crash_isnt_called_denied() -> None:
    farm = Farm()
    _, events = play([DEPLOY, DONE], farm.tools)
    crashed = refold(events[: kinds(events).index("tool_start") + 1])
    go_on(crashed, [DONE], farm.tools, layers=[on(Ear(Block("no")), PRE)])
    assert (farm.done, outcomes(crashed)) == (["b1"], [("c1", "unknown")])
    assert "It was started before" in told(crashed)


class Full(OSError):
    pass


@pytest.mark.parametrize("event", [PRE, POST, PROMPT, NOTICE, STOP])
def test_a_recording_failure_is_no_failure_of_a_hook(event: Any) -> None:
    """Rule 4: it goes up as it is, also through an approver"""
    error = Full("no room")

    def sink(event: Event) -> None:
        if event.type is EventType.HOOK:
            raise error

    hooks, farm = on(Ear(), event), Farm()
    approver = hooks.announcing(lambda request: request.approve())
    layers = [hooks, Policy(rules=[ASK], approver=approver)]
    player, _ = harness([DEPLOY, DONE], farm.tools, layers=layers, sinks=[sink])
    with pytest.raises(Full) as raised:
        asyncio.run(player.run("go"))
    assert raised.value is error
    assert farm.done == (["b1"] if event in (POST, STOP) else [])


@pytest.mark.parametrize("event", [PRE, POST, PROMPT, STOP])
def test_a_hook_that_is_cancelled_from_outside_is_no_failed_hook(event: Any) -> None:
    farm, cleaned = Farm(), []

    async def main() -> tuple[Run, list[Event], int]:
        reached = asyncio.Event()

        async def waits(given: HookInput) -> None:
            reached.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                cleaned.append(given.event)

        player, events = harness([DEPLOY, DONE], farm.tools, layers=[on(waits, event)])
        run = Run("run-1")
        player.record.message(run, "go")
        task = asyncio.create_task(player.resume(run))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return run, events, len(asyncio.all_tasks())

    run, events, tasks = asyncio.run(main())
    check(run, events)
    assert (cleaned, tasks, noted(events)) == ([event], 1, [])
    assert run.stop == {"reason": "cancelled"}
    expected = {PRE: [("c1", "not_run")], PROMPT: []}.get(event, [("c1", "ok")])
    assert outcomes(run) == expected


def test_a_hook_may_run_a_harness_of_its_own() -> None:
    """Also the one that it belongs to; but it isn't called in there for ever"""
    farm = Farm()

    def review(given: HookInput) -> Block | None:
        run = player.run_sync("Is this right?")
        return None if run.output == "fine" else Block(str(run))

    hook = Hook(PRE, review)
    turns = [DEPLOY, call("deploy", "c2", build="b2"), Final("fine"), DONE]
    player, events = harness(turns, farm.tools, layers=[Hooks([hook])])
    run = asyncio.run(player.run("go"))
    assert (run.output, farm.done) == ("done", ["b1"])
    said = [(note["call_id"], note["result"], note["reason"]) for note in noted(events)]
    assert said == [
        ("c2", "failed", "It started a run in which it would be called again."),
        ("c1", "passed", ""),
    ]


def test_a_hook_cant_take_up_the_run_that_waits_for_it() -> None:
    runs: list[Run] = []

    async def meddle(given: HookInput) -> None:
        await player.resume(runs[0])

    player, events = harness([DEPLOY, DONE], Farm().tools, layers=[on(meddle, PRE)])
    runs.append(Run("run-1"))
    player.record.message(runs[0], "go")
    asyncio.run(player.resume(runs[0]))
    assert noted(events)[0]["reason"].startswith(RunIsBusy.__name__)
    assert outcomes(runs[0]) == [("c1", "denied")]


def test_a_run_inside_a_tool_has_hooks_of_its_own_and_tells_of_its_own_run() -> None:
    ear, farm = Ear(), Farm()
    hooks = on(ear, NOTICE)
    policy = Policy(rules=[ASK], approver=hooks.announcing(lambda request: request.approve()))

    @tool(read_only=True, paths=[])
    async def inside(context: ToolExecutionContext) -> str:
        """Run a harness of its own."""
        model = ScriptedModel([DEPLOY, DONE])
        player = Harness(model, farm.tools, layers=[hooks, policy], sinks=[inner.append])
        return str((await player.run("inner")).output)

    inner: list[Event] = []
    turns = [call("inside", "c1"), call("deploy", "c2", build="b2"), DONE]
    run, events = play(turns, [inside, *farm.tools], layers=[hooks, policy])
    assert (run.output, farm.done) == ("done", ["b1", "b2"])
    assert len(noted(inner)) == len(noted(events)) == 1
    assert ear.heard[0].run_id != ear.heard[1].run_id == run.id


def test_real_commands_guard_a_real_run(tmp_path: Path) -> None:
    """B29, B30: a guard that reads its input, a formatter, a bell, and a check at the end"""
    guard = "grep -q '\"build\":\"b1\"' || { echo 'Only b1.' >&2; exit 2; }"
    check_live = "test -s live || { echo 'Nothing is live.' >&2; exit 2; }"
    layers = [
        Hooks(
            [
                Hook("pre_tool_use", guard, matcher="deploy"),
                Hook("post_tool_use", 'printf "%s\\n" "$ARGUMENTS" >> live', matcher="deploy"),
                Hook("stop", check_live),
            ]
        )
    ]
    turns = [DONE, call("deploy", "c1", build="b2"), call("deploy", "c2", build="b1"), DONE]
    run, events = play(turns, Farm().tools, layers=layers, cwd=tmp_path)
    assert outcomes(run) == [("c1", "denied"), ("c2", "ok")]
    assert (run.output, run.rejections) == ("done", 1)
    results = [note["result"] for note in noted(events)]
    assert results == ["blocked", "blocked", "passed", "passed", "passed", "passed"]
    assert len((tmp_path / "live").read_text(encoding="utf-8").splitlines()) == 2


def test_a_secret_in_a_reason_stays_out_of_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule 7"""
    monkeypatch.setenv("SHOP_API_KEY", "s3cr3t-of-the-shop")
    ears = Ear(Block("key s3cr3t-of-the-shop is wrong")), Ear(ValueError("s3cr3t-of-the-shop"))
    for ear in ears:
        run, events = play([DEPLOY, DONE], Farm().tools, layers=[on(ear, PRE)])
        assert "s3cr3t" not in "".join(event.to_json() for event in events) + told(run)


def test_a_trace_with_hooks_can_be_shown_and_read_back() -> None:
    _, events = play([DEPLOY, DONE], Farm().tools, layers=[on(Ear(Block("a\nb")), PRE, STOP)])
    trace = Trace(events)
    rows = [row for row in trace.table().rows if "hook" in row]
    assert ["pre_tool_use" in row[-1] for row in rows] == [True, False]
    assert all(len(str(event).splitlines()) == 1 for event in events)
    assert "hook 2" in trace.timeline().summary
    assert '"name":"hook"' in trace.to_perfetto().replace(" ", "")
