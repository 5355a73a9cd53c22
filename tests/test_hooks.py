"""Hooks around a run: who is called when, what a no does, and that no failure is a yes."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import ToolDenied
from mini_harness.hook import LONGEST_REASON
from mini_harness.hooks import Block, Hook, HookEvent, HookInput, Hooks, PromptBlocked
from mini_harness.layer import Feedback, Layer
from mini_harness.limits import FailFast
from mini_harness.policy import Policy
from mini_harness.protocol import Final
from mini_harness.run import Run, RunNotCompleted, Status, StopReason
from mini_harness.table import gist
from mini_harness.tools.edit import EditFile
from tests.ears import (
    ASK,
    BROKEN,
    DEPLOY,
    NO,
    NOTICE,
    POST,
    PRE,
    PROMPT,
    SOON,
    STOP,
    Ear,
    Farm,
    noted,
    odd,
    on,
    told,
)
from tests.loops import (
    DONE,
    call,
    check,
    harness,
    kinds,
    outcomes,
    play,
    refold,
)


def test_each_hook_is_called_at_its_moment_and_learns_what_it_is_about() -> None:
    """B09, B29"""
    ear, farm = Ear(), Farm()
    run, events = play([DEPLOY, Final({"live": ["b1"]})], farm.tools, layers=[on(ear)])
    assert ear.events == ["user_prompt_submit", "pre_tool_use", "post_tool_use", "stop"]
    prompt, before, after, stop = ear.heard
    assert {given.run_id for given in ear.heard} == {run.id}
    assert {given.cwd for given in ear.heard} == {Path.cwd()}
    assert prompt.prompt == "go"
    assert (before.call_id, before.tool, before.arguments) == ("c1", "deploy", {"build": "b1"})
    assert (after.call_id, after.tool, after.arguments) == ("c1", "deploy", {"build": "b1"})
    assert (after.output, after.outcome) == ("b1 is live", "ok")
    assert stop.answer == {"live": ["b1"]}
    where = [event.type.value for event in events]
    assert where == [
        *["message", "hook", "model_decision", "hook", "tool_start", "tool_result", "hook"],
        *["model_decision", "hook", "final"],
    ]


def test_a_hook_reads_well_in_a_line_and_in_the_table() -> None:
    """issue 4: what decided, and why"""
    farm = Farm()

    def no_fridays(_: HookInput) -> Block:
        return Block("Not on Fridays.")

    _, events = play([DEPLOY, DONE], farm.tools, layers=[Hooks([Hook(PRE, no_fridays)])])
    (hook,) = [event for event in events if event.type == "hook"]
    assert "no_fridays blocked. Not on" in str(hook)
    assert gist(hook) == "pre_tool_use deploy: no_fridays blocked: Not on Fridays."


def test_every_hook_that_ran_leaves_an_event() -> None:
    """Who, when, about what, and how it ended; those after a no didn't run"""

    def fine(given: HookInput) -> None: ...
    def guard(given: HookInput) -> Block:
        return Block("Not today.")

    def late(given: HookInput) -> None:
        raise AssertionError("the first reason wins")

    layer = Hooks([Hook("pre_tool_use", each) for each in (fine, guard, late)])
    _, events = play([DEPLOY, DONE], Farm().tools, layers=[layer])
    about = {"event": "pre_tool_use", "tool": "deploy", "call_id": "c1"}
    assert noted(events) == [
        {**about, "hook": "fine", "result": "passed", "reason": ""},
        {**about, "hook": "guard", "result": "blocked", "reason": "Not today."},
    ]


def test_a_blocked_call_doesnt_run_and_the_model_is_told_why() -> None:
    """B09, B23, B29"""
    farm, asked = Farm(), Ear()
    layers = [on(Ear(Block("Not today.")), PRE), Policy(rules=[ASK], approver=odd(asked))]
    run, _ = play([DEPLOY, DONE], farm.tools, layers=layers)
    assert (farm.done, asked.heard) == ([], [])
    assert outcomes(run) == [("c1", "denied")]
    assert told(run) == "Tool not allowed: deploy. A hook blocked it: Not today."
    run, _ = play([DEPLOY], farm.tools, layers=[FailFast(), on(Ear(Block("")), PRE)])
    with pytest.raises(ToolDenied) as raised:
        run.unwrap()
    assert raised.value.reason == "A hook blocked it: It gave no reason."


@pytest.mark.parametrize(
    ("wanted", "layers", "outcome"),
    [
        (DEPLOY, [], "ok"),
        (BROKEN, [], "error"),
        (DEPLOY, [Policy(rules=[NO])], "denied"),
        (DEPLOY, [Hooks([Hook(PRE, lambda _: Block("no"))])], "denied"),
    ],
)
def test_a_post_hook_is_called_however_the_call_ended(
    wanted: Any, layers: list[Layer], outcome: str
) -> None:
    """B09: it ran, failed, was denied, or was blocked"""
    ear = Ear(Block("Look at the log."))
    run, events = play([wanted, DONE], Farm().tools, layers=[on(ear, POST), *layers])
    assert [given.outcome for given in ear.heard] == [outcome]
    assert outcomes(run) == [("c1", outcome)]
    assert told(run) == f"{ear.heard[0].output}\n\nA hook says: Look at the log."
    assert kinds(events).count("tool_result") + kinds(events).count("tool_error") <= 2


def test_a_blocked_call_reaches_the_post_hook_of_the_same_layer() -> None:
    ear = Ear(Block("no"))
    run, _ = play([DEPLOY, DONE], Farm().tools, layers=[on(ear, PRE, POST)])
    assert ear.events == ["pre_tool_use", "post_tool_use"]
    assert ear.heard[1].output == told(run)


def test_what_a_post_hook_says_of_an_empty_output_stands_alone() -> None:
    run, _ = play([call("look"), DONE], Farm().tools, layers=[on(Ear(Block("Odd.")), POST)])
    assert told(run) == "A hook says: Odd."


def test_a_blocked_message_stops_the_run_before_the_model_hears_it() -> None:
    """B29"""
    layers = [on(Ear(Block("No secrets."), Block("Still no.")), PROMPT)]
    player, events = harness([DONE], layers=layers)
    run = asyncio.run(player.run("my password is hunter2"))
    check(run, events)
    assert (run.status, run.step, run.stop["reason"]) == (Status.STOPPED, 0, "denied")  # type: ignore[index]
    with pytest.raises(PromptBlocked, match="No secrets") as raised:
        run.unwrap()
    assert raised.value.reason == "No secrets."
    asyncio.run(player.resume(run))
    with pytest.raises(PromptBlocked, match="Still no"):
        run.unwrap()
    with pytest.raises(RunNotCompleted, match="No secrets"):
        refold(events[:3]).unwrap()


def test_a_message_is_judged_once_and_what_the_harness_says_isnt() -> None:
    ear = Ear()
    turns = [DEPLOY, {"type": "dance"}, DONE, DONE]
    layers = [on(ear, PROMPT), on(Ear(Block("Say more.")), STOP)]
    player, _ = harness(turns, Farm().tools, layers=layers)
    run = asyncio.run(player.run("go"))
    assert (run.status, run.rejections) == (Status.COMPLETED, 1)
    assert [given.prompt for given in ear.heard] == ["go"]
    player.record.message(run, "and now?")
    player.model.turns += [DONE]  # type: ignore[attr-defined]
    asyncio.run(player.resume(run))
    assert [given.prompt for given in ear.heard] == ["go", "and now?"]


def test_a_blocked_message_doesnt_get_by_behind_another() -> None:
    def guard(given: HookInput) -> Block | None:
        return Block("no") if "hunter2" in given.prompt else None

    player, _ = harness([DONE], layers=[on(guard, PROMPT)])
    run = asyncio.run(player.run("my password is hunter2"))
    player.record.message(run, "hello")
    asyncio.run(player.resume(run))
    assert (run.status, run.step) == (Status.STOPPED, 0)


def test_a_blocked_answer_goes_back_with_the_reason() -> None:
    """B29"""
    ear = Ear(Block("Run the tests first."))
    run, _ = play([Final("done?"), Final("done!")], layers=[on(ear, STOP)])
    assert run.output == "done!"
    assert [given.answer for given in ear.heard] == ["done?", "done!"]
    message = run.history.messages[2]
    assert (message["because"], message["content"]) == ("rejected", "Run the tests first.")
    run, _ = play([DONE] * 4, layers=[on(lambda _: Block("never"), STOP)])
    assert run.stop is not None
    assert run.stop["reason"] == StopReason.REJECTED


def test_an_answer_that_a_layer_inside_sends_back_is_no_stop() -> None:
    class Once(Layer):
        async def finish(self, run: Run, final: Final, next: Any) -> Any:
            return Feedback("more") if run.rejections == 0 else f"<{await next(run, final)}>"

    ear = Ear()
    play([Final("a"), Final("b")], layers=[on(ear, STOP), Once()])
    assert [given.answer for given in ear.heard] == ["<b>"]


def giving(value: Any) -> Callable[[HookInput], Any]:
    return lambda given: value


def raising(error: BaseException) -> Callable[[HookInput], Any]:
    def hook(given: HookInput) -> None:
        raise error

    return hook


async def never(given: HookInput) -> None:
    await asyncio.Event().wait()


async def cancels_itself(given: HookInput) -> None:
    raise asyncio.CancelledError


async def exits(given: HookInput) -> None:
    raise SystemExit(3)


FAILURES: dict[str, tuple[Any, str]] = {
    "raises": (raising(ValueError("oh")), "ValueError: oh"),
    "stops iterating": (raising(StopIteration()), "RuntimeError: "),
    "exits": (raising(SystemExit(3)), "SystemExit: 3"),
    "exits, async": (exits, "SystemExit: 3"),
    "false": (giving(False), 'It gave False. It must give None or Block("why").'),
    "true": (giving(True), "It gave True."),
    "text": (giving("no"), "It gave 'no'."),
    "the class": (giving(Block), "It gave <class"),
    "no text": (lambda _: Block(odd(7)), "TypeError: The reason must be text"),
    "takes nothing": (lambda: None, "TypeError"),
    "cancels itself": (cancels_itself, "CancelledError"),
    "never ends": (never, "It gave no answer within 0.2 seconds."),
    "command": ("exit 1", "exit code 1."),
    "command that never ends": ("sleep 60", "it didn't end within 0.2 seconds."),
}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("event", list(HookEvent))
@pytest.mark.parametrize(("do", "reason"), FAILURES.values(), ids=FAILURES)
def test_a_failed_hook_blocks_where_there_is_something_to_block(
    do: Any, reason: str, event: HookEvent, strict: bool
) -> None:
    """B29, rule 1: could not judge is never yes; unless its owner says that it doesn't matter"""
    farm, seconds = Farm(), 0.2 if "never" in str(do) or "sleep" in str(do) else 30
    hook = Hook(event, do, seconds=seconds, block_on_failure=strict)
    asks = [Policy(rules=[ASK])] if event is NOTICE else []
    turns = [DEPLOY, *[DONE] * 4]
    run, events = play(turns, farm.tools, layers=[Hooks([hook]), *asks])
    note = noted(events)[0]
    assert (note["result"], note["reason"][: len(reason)]) == ("failed", reason)
    blocks = strict and event in (PRE, PROMPT, STOP)
    said = [*(str(dict(message)) for message in run.history.messages), str(run.stop)]
    assert any("so nobody has judged this" in text for text in said) == blocks
    if event is not NOTICE:  # Then it waits for a person.
        assert farm.done == ([] if blocks and event is not STOP else ["b1"])
        assert (run.status is Status.COMPLETED) == (not blocks or event is PRE)


def test_a_slow_function_is_given_up_and_its_late_answer_dropped() -> None:
    """Rule 5: a thread can't be ended"""
    release, ended = threading.Event(), threading.Event()

    def slow(given: HookInput) -> None:
        release.wait(SOON)
        ended.set()

    began = time.monotonic()
    layers = [on(slow, PRE, seconds=0.1)]
    run, _ = play([DEPLOY, DONE], Farm().tools, layers=layers)
    release.set()
    assert "slow failed" in told(run)
    assert time.monotonic() - began < SOON
    assert ended.wait(SOON)
    assert outcomes(run) == [("c1", "denied")]


def test_an_async_hook_that_is_given_up_may_clean_up() -> None:
    cleaned = []

    async def tidy(given: HookInput) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            cleaned.append(given.call_id)

    play([DEPLOY, DONE], Farm().tools, layers=[on(tidy, PRE, seconds=0.1)])
    assert cleaned == ["c1"]


def test_a_function_may_be_async_or_give_something_to_await() -> None:
    async def later(given: HookInput) -> Block:
        await asyncio.sleep(0)
        return Block(f"no {given.tool}")

    class Caller:
        async def __call__(self, given: HookInput) -> Block:
            return await later(given)

    def soon(given: HookInput) -> Any:
        return later(given)

    for do in (later, Caller(), soon, partial(later)):
        run, events = play([DEPLOY, DONE], Farm().tools, layers=[on(do, PRE)])
        assert told(run).endswith("A hook blocked it: no deploy")
        assert len(noted(events)) == 1


def test_a_function_that_waits_keeps_no_other_task_waiting() -> None:
    async def main() -> None:
        passed = threading.Event()
        layers = [on(lambda _: None if passed.wait(SOON) else Block("alone"), PRE)]
        player, _ = harness([DEPLOY, DONE], Farm().tools, layers=layers)
        task = asyncio.create_task(player.run("go"))
        await asyncio.sleep(0)
        passed.set()
        assert outcomes(await task) == [("c1", "ok")]

    asyncio.run(main())


@pytest.mark.parametrize(
    ("matcher", "called"),
    [("*", True), ("deploy", True), ("de*", True), ("[de]eploy", True), ("deplo?|other", True)],
)
def test_a_matcher_is_a_pattern_on_the_tools_name(matcher: str, called: bool) -> None:
    """B29"""
    ear = Ear()
    play([DEPLOY, call("look"), DONE], Farm().tools, layers=[on(ear, PRE, POST, matcher=matcher)])
    heard = [given.tool for given in ear.heard]
    assert heard.count("deploy") == 2 * called
    assert heard.count("look") == 2 * (matcher == "*")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Hook("pre_tool", print), "There is no event 'pre_tool'. The events are: pre_tool"),
        (lambda: Hook(odd(None), print), "There is no event None"),
        (lambda: Hook(PRE, odd(7)), "A hook does a function or a shell line, not 7"),
        (lambda: Hook(STOP, print, matcher="x"), "At stop there is no tool that 'x' could match"),
        (lambda: Hook(PRE, print, matcher=""), "The matcher must be a pattern"),
        *[
            (lambda m=m: Hook(PRE, print, matcher=m), "can be no tool's name")
            for m in ("a, b", "a|", "(write|edit)_file", "bash(*)", "write.*", "^a", "a | b")
        ],
        (lambda: Hook(PRE, print, matcher=odd(None)), "The matcher must be a pattern"),
        (lambda: Hook(PRE, print, block_on_failure=odd(1)), "block_on_failure is 1"),
        *[
            (lambda n=n: Hook(PRE, print, seconds=n), "more than 0 seconds")
            for n in (0, -1, math.inf, math.nan, True, "30", None)
        ],
        (lambda: Hooks(odd(Hook(PRE, print))), "Give the hooks as a list"),
        (lambda: Hooks(odd([print])), "isn't a Hook"),
        (lambda: Hooks([]).announcing(odd(None)), "The approver can't be called"),
    ],
)
def test_what_cant_be_meant_is_refused(make: Callable[[], Any], text: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        make()
    assert text in str(raised.value)


def test_a_hook_cant_change_what_runs() -> None:
    """Rule 2: what was approved is what runs"""

    def edit(given: HookInput) -> None:
        given.arguments["build"] = "b2"

    def replace_them(given: HookInput) -> None:
        given.arguments = {}  # type: ignore[misc, assignment]

    for do in (edit, replace_them):
        farm = Farm()
        layers = [on(do, PRE, block_on_failure=False)]
        _, events = play([DEPLOY, DONE], farm.tools, layers=layers)
        assert (farm.done, noted(events)[0]["result"]) == (["b1"], "failed")


def test_without_a_hook_for_it_nothing_is_added_to_a_step() -> None:
    for layer in (Hooks([]), on(Ear(), PRE, POST, matcher="look")):
        assert play([DEPLOY, DONE], Farm().tools, layers=[layer]).events == (
            play([DEPLOY, DONE], Farm().tools).events
        )


@pytest.mark.parametrize("matcher", ["deplyo", "Deploy", "look|deplyo"])
def test_a_hook_that_misspells_its_tool_is_noticed(matcher: str) -> None:
    """A guard that isn't there must be noticed"""
    hook = Hook(PRE, lambda given: Block("no"), matcher=matcher)
    with pytest.raises(ValueError, match=r"which isn't here\. Is it 'deploy'"):
        play([DEPLOY, DONE], Farm().tools, layers=[Hooks([hook])])


@pytest.mark.parametrize("matcher", ["Edit", "bash|edit", "Edit|look"])
def test_the_short_name_that_other_programs_give_a_tool_is_noticed(matcher: str) -> None:
    """A guard that isn't there must be noticed"""
    hook = Hook(PRE, lambda given: Block("no"), matcher=matcher)
    with pytest.raises(ValueError, match="Is it 'edit_file' that is meant"):
        play([DEPLOY, DONE], [*Farm().tools, EditFile()], layers=[Hooks([hook])])


@pytest.mark.parametrize("matcher", ["send_mail", "Depl*", "send_mail|ask"])
def test_a_hook_for_no_tool_of_this_harness_is_warned_of_since_another_may_have_it(
    matcher: str,
) -> None:
    hook = Hook(PRE, lambda given: Block("no"), matcher=matcher)
    with pytest.warns(UserWarning, match="so it is never called. The tools here are: deploy, look"):
        run, _ = play([DEPLOY, DONE], Farm().tools, layers=[Hooks([hook])])
    assert outcomes(run) == [("c1", "ok")]


@pytest.mark.parametrize("event", [PRE, POST])
def test_a_reason_has_a_bound(event: HookEvent) -> None:
    """It goes into the history and the record"""
    run, events = play([DEPLOY, DONE], Farm().tools, layers=[on(Ear(Block("x" * 10**6)), event)])
    assert told(run).endswith("xx [... 990,000 characters left out here]")
    assert max(len(event.to_json()) for event in events) < 2 * LONGEST_REASON
