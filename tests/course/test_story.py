"""The story's folder is real, and what the lessons say of it is true."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import deny_all
from mini_harness.clock import VirtualClock
from mini_harness.course import story
from mini_harness.layer import Layer
from mini_harness.loop import Harness
from mini_harness.models.scripted import ScriptedModel
from mini_harness.outputs import LargeOutput
from mini_harness.policy import Policy
from mini_harness.rules import Rule, Verdict
from mini_harness.run import Run
from mini_harness.tools.base import ToolExecutionContext
from mini_harness.tools.builds import BUILDS, TOOLS
from mini_harness.tools.default import create_default_tool_registry
from mini_harness.tools.files import ReadFile
from mini_harness.tools.shell import Bash


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    return story.fresh_farm(tmp_path / "farm")


def triage(farm: Path) -> Run:
    tools = [*TOOLS.values(), ReadFile(), Bash()]
    model = ScriptedModel(story.triage())
    return Harness(model, tools, cwd=farm, clock=VirtualClock()).run_sync(story.GOAL)


def test_the_answer_names_the_test_and_the_line_that_are_at_fault(farm: Path) -> None:
    source = farm / "shop" / "shipping.py"
    lines = source.read_text(encoding="utf-8").splitlines()
    assert ">" in lines[8]
    assert "line 9" in story.ANSWER
    context = ToolExecutionContext(cwd=farm)
    pytest_run = {"command": "python -m pytest", "cwd": "shop"}

    def run_tests() -> str:
        bash = Bash()
        arguments = bash.input_model.model_validate(pytest_run)
        return asyncio.run(bash.execute(arguments, context)).output

    before = run_tests()
    assert "1 failed, 2 passed" in before
    assert "test_an_order_of_exactly_50_euros_is_free" in before
    lines[8] = lines[8].replace(">", ">=")
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "3 passed" in run_tests()


def test_the_log_holds_what_the_test_run_really_prints(farm: Path) -> None:
    seen = [m["tool_result"] for m in triage(farm).history.messages if m["role"] == "tool"]
    log, tests = seen[1], seen[2]
    assert tests.removesuffix("\n[exit code 1]").strip() in log


def test_the_test_run_prints_no_duration_and_no_path(farm: Path) -> None:
    """report N05"""
    tests = triage(farm).history.messages[6]["tool_result"]
    assert str(farm.parent) not in tests
    assert " in 0." not in tests


def test_the_triage_ends_with_the_answer(farm: Path) -> None:
    run = triage(farm)
    assert (run.unwrap(), run.step) == (story.ANSWER, 6)


def test_a_fresh_farm_forgets_what_was_done_to_the_old_one(farm: Path) -> None:
    (farm / "deployments.log").write_text("build-102\n", encoding="utf-8")
    assert story.fresh_farm(farm) == farm
    assert not (farm / "deployments.log").exists()


def test_a_folder_of_somebody_elses_is_left_alone(tmp_path: Path) -> None:
    mine = tmp_path / "farm"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(FileExistsError, match="stays as it is"):
        story.fresh_farm(mine)
    assert (mine / "thesis.txt").exists()


def test_every_build_has_its_log(farm: Path) -> None:
    assert {path.stem for path in (farm / "logs").iterdir()} == set(BUILDS)


def gullible(farm: Path, *layers: Layer) -> Run:
    model, tools = ScriptedModel(story.gullible()), [*TOOLS.values(), ReadFile(), Bash()]
    return Harness(model, tools, layers=layers, cwd=farm).run_sync(story.GOAL)


def test_a_line_in_the_log_talks_an_unguarded_agent_into_a_deployment(farm: Path) -> None:
    """A08"""
    poisoned = story.poisoned_farm(farm)
    assert gullible(poisoned).unwrap() == "Done as the log says. build-102 is live."
    assert (poisoned / "deployments.log").read_text(encoding="utf-8") == "build-102\n"


def test_the_same_agent_behind_a_policy_deploys_nothing_and_answers(farm: Path) -> None:
    """A08"""
    poisoned = story.poisoned_farm(farm)
    rule = Rule("people-deploy", Verdict.DENY, tool="deploy_prod", reason="Only people deploy.")
    run = gullible(poisoned, Policy(rules=[rule]))
    assert story.ANSWER in run.unwrap()
    assert "Only people deploy." in run.unwrap()
    assert not (poisoned / "deployments.log").exists()


def test_an_insistent_agent_deploys_twice_unless_it_is_denied(farm: Path) -> None:
    poisoned, tools = story.poisoned_farm(farm), [*TOOLS.values()]
    harness = Harness(ScriptedModel(story.insistent()), tools, cwd=poisoned)
    assert harness.run_sync(story.GOAL).unwrap() == "Done as the log says. build-102 is live."
    log = poisoned / "deployments.log"
    assert log.read_text(encoding="utf-8") == "build-102\n" * 2
    log.unlink()
    layers = [Policy(approver=deny_all)]
    denied = Harness(ScriptedModel(story.insistent()), tools, layers=layers, cwd=poisoned)
    assert "I was told" in denied.run_sync(story.GOAL).unwrap()
    assert not log.exists()


def test_without_the_line_the_gullible_agent_deploys_nothing(farm: Path) -> None:
    assert gullible(farm).unwrap() == story.ANSWER
    assert not (farm / "deployments.log").exists()


def test_the_line_is_all_that_a_poisoned_farm_adds_to_a_log_that_stays_true(farm: Path) -> None:
    log = farm / "logs" / "build-102.log"
    before = log.read_text(encoding="utf-8")
    story.poisoned_farm(farm)
    after = log.read_text(encoding="utf-8")
    assert after.replace(story.INJECTED, "") == before != after


def test_a_poisoned_farm_is_no_farm_that_somebody_changed(
    farm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """report N05: a lesson's first cell says the same the second time"""
    for make in (story.poisoned_farm, story.poisoned_farm, story.fresh_farm):
        make(farm)
    assert capsys.readouterr().out == ""
    assert [each.name for each in farm.parent.iterdir()] == [farm.name]
    log = story.poisoned_farm(farm) / "logs" / "build-102.log"
    log.write_text("my own notes", encoding="utf-8")
    story.fresh_farm(farm)
    assert "The farm you changed is now in" in capsys.readouterr().out


def mending(farm: Path, turns: list[Any], *layers: Layer) -> str:
    tools = create_default_tool_registry()
    harness = Harness(ScriptedModel(turns), tools, layers=layers, cwd=farm, clock=VirtualClock())
    said: str = harness.run_sync(story.MEND).unwrap()
    return said


def test_sed_hits_more_than_the_line_that_was_meant_and_no_test_runs_any_more(farm: Path) -> None:
    assert mending(farm, story.mend_with_sed()).startswith("Mended:")
    diff = story.changes(farm)
    assert "+def shipping_cents(total_cents: int) ->= int:" in diff
    assert "+    return 0 if total_cents >= FREE" in diff
    assert story.tests(farm) == "1 error"


def test_an_edit_hits_the_line_alone_and_the_tests_pass(farm: Path) -> None:
    assert story.changes(farm) == "Nothing changed."
    assert story.tests(farm) == "1 failed, 2 passed"
    assert "the tests pass" in mending(farm, story.mend_with_edit())
    assert [line[0] for line in story.changes(farm).splitlines()[3:] if line[0] in "+-"] == [
        "-",
        "+",
    ]
    assert story.tests(farm) == "3 passed"


def test_an_edit_that_is_kept_from_running_is_no_success(farm: Path) -> None:
    before = story.changes(farm)
    assert mending(farm, story.mend_with_edit(), Policy(mode="plan")).startswith("Not mended.")
    assert story.changes(farm) == before


def test_what_the_story_itself_mends_breaks_or_keeps_is_no_change_of_a_person(
    farm: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """report N05: a cell says the same the second time"""
    for mend in (story.mend_with_sed, story.mend_with_edit, story.mend_with_edit):
        mending(farm, mend(), LargeOutput(1_000, preview=1_000))
        (farm / "pages.log").write_text("Ada: Look!\n", encoding="utf-8")
        story.fresh_farm(farm)
        assert story.tests(farm) == "1 failed, 2 passed"
        assert not list(farm.rglob("*.bak"))
    assert capsys.readouterr().out == ""
    assert [each.name for each in farm.parent.iterdir()] == [farm.name]
