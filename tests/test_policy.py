"""What a policy says about a call, and that it is kept."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import Approval, ApprovalRequest, ToolDenied, approve_all
from mini_harness.events import EventType
from mini_harness.loop import Harness
from mini_harness.policy import Judgement, PermissionMode, Policy, Rule, Verdict
from mini_harness.protocol import ToolCall
from mini_harness.run import Status
from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.call import Call
from mini_harness.tools.files import ReadFile
from mini_harness.tools.function import tool
from mini_harness.tools.shell import Bash
from tests.loops import DONE, call, check, harness, kinds, outcomes, play, refold, turn

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.REQUIRE_APPROVAL, Verdict.DENY
FARM = list(TOOLS.values())
LOOK = call("read_build", "look", build_id="build-102")
DEPLOY = call("deploy_prod", "deploy", build_id="build-102")


@tool(paths=["path"])
def write(path: str, text: str, context: ToolExecutionContext) -> str:
    """Append a line to a file."""
    target = context.cwd / path
    old = target.read_text(encoding="utf-8") if target.exists() else ""
    target.write_text(f"{old}{text}\n", encoding="utf-8")
    return "written"


@tool(paths=["old", "new"])
def move(old: str, new: str) -> str:
    """Declares two paths."""
    return f"{old} {new}"


@tool
def decoy(path: str, file_path: str) -> str:
    """Declares no paths, so that one could hide behind the other."""
    return f"{path} {file_path}"


def judged(policy: Policy, of: BaseTool, cwd: Path | str = ".", **arguments: Any) -> Judgement:
    return policy.judge(Call(of, "c", arguments), Path(cwd).resolve())


def verdict(policy: Policy, of: BaseTool, cwd: Path | str = ".", **arguments: Any) -> Verdict:
    return judged(policy, of, cwd, **arguments).verdict


# The allow-list


def test_a_tool_outside_the_list_is_denied_and_never_called() -> None:
    """A07, A08"""
    run, events = play([DEPLOY, DONE], FARM, layers=[Policy({"read_build"})])
    assert outcomes(run) == [("deploy", "denied")]
    assert "tool_start" not in kinds(events)
    assert "Tool not allowed: deploy_prod" in run.history.messages[2]["tool_result"]


def test_check_raises_what_the_article_says() -> None:
    """A07"""
    policy = Policy({"read_build"}, rules=[Rule("no-add", DENY, tool="add")])
    policy.check("read_build")
    with pytest.raises(PermissionError, match=r"^Tool not allowed: deploy_prod$"):
        policy.check("deploy_prod")
    with pytest.raises(ToolDenied):
        Policy(rules=[Rule("no-add", DENY, tool="a*")]).check("add")
    Policy(rules=[Rule("no-one", DENY, tool="add", when=lambda a: a.a == 1)]).check("add")


def test_an_empty_list_allows_nothing_and_no_list_is_none() -> None:
    """A07"""
    assert verdict(Policy(()), TOOLS["read_build"], build_id="x") is DENY
    assert verdict(Policy(), TOOLS["read_build"], build_id="x") is ALLOW


def test_the_list_allows_also_what_changes_something() -> None:
    """A07, A23"""
    assert verdict(Policy(["deploy_prod"]), TOOLS["deploy_prod"], build_id="x") is ALLOW


# What is said if no rule speaks


@pytest.mark.parametrize(
    ("mode", "reads", "changes"),
    [("default", ALLOW, ASK), ("plan", ALLOW, DENY), ("full_auto", ALLOW, ALLOW)],
)
def test_modes_differ_in_what_changes_something(
    mode: str, reads: Verdict, changes: Verdict
) -> None:
    """B04, B19, A23"""
    policy = Policy(mode=mode)
    assert policy.mode is PermissionMode(mode)
    assert verdict(policy, TOOLS["read_build"], build_id="x") is reads
    assert verdict(policy, TOOLS["deploy_prod"], build_id="x") is changes


def test_plan_mode_denies_what_a_rule_allows() -> None:
    """B19"""
    policy = Policy(["deploy_prod"], rules=[Rule("yes", ALLOW)], mode="plan")
    assert judged(policy, TOOLS["deploy_prod"], build_id="x")[:2] == (DENY, "plan-mode")


# Rules


def test_the_strictest_rule_counts_whatever_the_order() -> None:
    """A23, B20"""
    rules = [Rule("yes", ALLOW), Rule("ask", ASK), Rule("no", DENY)]
    for order in (rules, rules[::-1], rules[1:] + rules[:1]):
        assert judged(Policy(rules=order), TOOLS["add"], a=1, b=1).rule == "no"
        mild = [rule for rule in order if rule.id != "no"]
        assert judged(Policy(rules=mild), TOOLS["add"], a=1, b=1).rule == "ask"


def test_of_equally_strict_rules_the_first_is_named_with_its_reason() -> None:
    rules = [Rule("one", DENY, reason="Not today."), Rule("two", DENY)]
    assert judged(Policy(rules=rules), TOOLS["add"], a=1, b=1) == (DENY, "one", "Not today.")
    assert judged(Policy(rules=rules[::-1]), TOOLS["add"], a=1, b=1).rule == "two"
    for says in (ALLOW, ASK):
        rules = [Rule("one", says), Rule("two", says)]
        assert judged(Policy(rules=rules), TOOLS["add"], a=1, b=1).rule == "one"


def test_all_conditions_of_a_rule_must_hold() -> None:
    rule = Rule("big", DENY, tool="ad*", when=lambda a: a.a > 10)
    policy = Policy(rules=[rule])
    assert verdict(policy, TOOLS["add"], a=11, b=0) is DENY
    assert verdict(policy, TOOLS["add"], a=10, b=0) is ALLOW
    assert verdict(policy, TOOLS["read_build"], build_id="x") is ALLOW


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"id": " "}, ValueError),
        ({"id": None}, TypeError),
        ({"verdict": "maybe"}, ValueError),
        ({"verdict": True}, ValueError),
        ({"tool": ""}, ValueError),
        ({"path": "  "}, ValueError),
        ({"path": 3}, TypeError),
        ({"command": ""}, ValueError),
        ({"command": "git status && ls"}, ValueError),
        ({"command": "echo $HOME"}, ValueError),
        ({"when": "always"}, TypeError),
        ({"reason": None}, TypeError),
    ],
)
def test_a_malformed_rule_is_an_error_and_never_left_out(
    parts: dict[str, Any], error: type[Exception]
) -> None:
    """B22, P04"""
    with pytest.raises(error):
        Rule(**{"id": "x", "verdict": DENY, **parts})


def test_patterns_are_stripped() -> None:
    """B22"""
    rule = Rule(" no ", DENY, tool=" add ")
    assert judged(Policy(rules=[rule]), TOOLS["add"], a=1, b=1)[:2] == (DENY, "no")


@pytest.mark.parametrize(
    "parts",
    [
        {"allowed_tools": "add"},
        {"allowed_tools": [1]},
        {"allowed_tools": [" "]},
        {"rules": [{"id": "x"}]},
        {"rules": [Rule("x", DENY), Rule("x", ALLOW)]},
        {"mode": "yolo"},
        {"approver": "me"},
        {"patience": 0},
        {"patience": -1},
    ],
)
def test_a_malformed_policy_is_an_error(parts: dict[str, Any]) -> None:
    """P04"""
    with pytest.raises((TypeError, ValueError)):
        Policy(**parts)


# Could not judge is never yes


class Odd(BaseTool):
    """Answers whatever it is told to about its own calls."""

    name = "odd"
    description = "Odd."
    input_model = ReadFile.input_model

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def _say(self, what: str, otherwise: Any) -> Any:
        answer = self.answers.get(what, otherwise)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def is_read_only(self, arguments: Any) -> bool:
        answer: bool = self._say("read_only", True)
        return answer

    def paths(self, arguments: Any) -> Any:
        return self._say("paths", [])

    def command(self, arguments: Any) -> Any:
        return self._say("command", None)

    async def execute(self, arguments: Any, context: ToolExecutionContext) -> ToolResult:
        raise AssertionError("it must not run")


@pytest.mark.parametrize(
    "answers",
    [
        {"read_only": RuntimeError("no idea")},
        {"read_only": 1},
        {"read_only": None},
        {"paths": RuntimeError("no idea")},
        {"paths": "a.txt"},
        {"paths": [None]},
        {"paths": ["a\0b"]},
        {"command": RuntimeError("no idea")},
        {"command": ["ls"]},
    ],
)
def test_a_tool_that_cannot_tell_is_denied(answers: dict[str, Any]) -> None:
    """P04"""
    run, events = play(
        [call("odd", "x", path="a"), DONE], [Odd(**answers)], layers=[Policy(mode="plan")]
    )
    assert outcomes(run) == [("x", "denied")]
    (note,) = run.notes[EventType.VERDICT]
    assert note["reason"].startswith("policy failed: ")
    assert "tool_start" not in kinds(events)


@pytest.mark.parametrize("answer", ["no", 1, None, [], "raise"])
@pytest.mark.parametrize("says", [ALLOW, ASK, DENY])
def test_a_condition_that_fails_denies_whatever_its_rule_would_say(
    says: Verdict, answer: Any
) -> None:
    """P04"""

    def condition(_: Any) -> Any:
        if answer == "raise":
            raise LookupError("no such key")
        return answer

    policy = Policy(["add"], rules=[Rule("fragile", says, when=condition)], mode="full_auto")
    found = judged(policy, TOOLS["add"], a=1, b=1)
    assert found[:2] == (DENY, "fragile")
    assert found.reason.startswith("policy failed: ")


def test_a_condition_cannot_change_what_others_see_or_what_runs() -> None:
    """P05"""

    def meddles(arguments: Any) -> bool:
        arguments.a = 100
        return False

    rules = [Rule("meddles", DENY, when=meddles), Rule("big", DENY, when=lambda a: a.a > 10)]
    run, _ = play([call("add", a=1, b=1), DONE], FARM, layers=[Policy(rules=rules)])
    assert run.history.messages[2]["tool_result"] == "2"


# Paths


def test_a_decoy_argument_hides_nothing(tmp_path: Path) -> None:
    """issue 4, sharp fault 1; B20"""
    policy = Policy(rules=[Rule("secret", DENY, path="secret/**")], mode="full_auto")
    for hidden in ("secret/a", "./secret/a", "x/../secret/a", str(tmp_path / "secret")):
        assert verdict(policy, decoy, tmp_path, path=hidden, file_path="ok") is DENY
        assert verdict(policy, decoy, tmp_path, path="ok", file_path=hidden) is DENY
    assert verdict(policy, decoy, tmp_path, path="ok", file_path="ok") is ALLOW


def test_a_link_in_a_parent_folder_hides_nothing(tmp_path: Path) -> None:
    """issue 4, sharp fault 3; B10"""
    (tmp_path / "secret").mkdir()
    (tmp_path / "ok").symlink_to("secret", target_is_directory=True)
    (tmp_path / "way").symlink_to("ok", target_is_directory=True)
    policy = Policy(rules=[Rule("s", DENY, path="secret"), Rule("ok", ALLOW, path="ok/**")])
    for path in ("ok/a", "way/a", "ok", "way/../secret/x"):
        assert judged(policy, write, tmp_path, path=path, text="").rule == "s"
    assert verdict(policy, decoy, tmp_path, path="way", file_path="x") is DENY
    named = Policy(rules=[Rule("o", DENY, path="o?")])
    assert verdict(named, write, tmp_path, path="ok/a", text="") is DENY, "as it is written"


def test_an_allow_rule_covers_only_what_links_lead_to(tmp_path: Path) -> None:
    """B10"""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "out").symlink_to("/usr", target_is_directory=True)
    policy = Policy(rules=[Rule("docs", ALLOW, path="docs/*")])
    assert verdict(policy, move, tmp_path, old="docs/a", new="docs/b") is ALLOW
    assert verdict(policy, move, tmp_path, old="docs/a", new="b") is ASK
    assert verdict(policy, write, tmp_path, path="docs/a.md", text="") is ALLOW
    assert verdict(policy, write, tmp_path, path="docs/out/a.md", text="") is ASK
    assert verdict(policy, write, tmp_path, path="docs/../a.md", text="") is ASK


def test_a_path_never_allows_a_tool_that_declares_none_or_a_command(tmp_path: Path) -> None:
    policy = Policy(rules=[Rule("here", ALLOW, path="**")])
    assert verdict(policy, decoy, tmp_path, path="a", file_path="b") is ASK
    assert verdict(policy, Bash(), tmp_path, command="touch x") is ASK
    assert verdict(policy, write, tmp_path, path="a", text="") is ALLOW


@pytest.mark.parametrize("path", ["data", "data/a", "data/a/b", "DATA/a", "./data//a"])
def test_a_pattern_of_a_folder_covers_all_that_is_in_it(path: str, tmp_path: Path) -> None:
    """B22"""
    for pattern in ("data", "data/", "data/**", str(tmp_path / "data"), "d?t*"):
        policy = Policy(rules=[Rule("no", DENY, path=pattern)])
        assert verdict(policy, write, tmp_path, path=path, text="") is DENY
        assert verdict(policy, write, tmp_path, path="datum/x/y", text="") is (
            DENY if pattern == "d?t*" else ASK
        )


def test_a_path_rule_sees_the_words_of_a_command_line(tmp_path: Path) -> None:
    policy = Policy(rules=[Rule("secret", DENY, path="secret/**")])
    for line in ("cat secret/a", "cat <secret/a", "x --file=secret/a", "env cat 's'ecret/a"):
        assert judged(policy, Bash(), tmp_path, command=line).rule == "secret"


def test_credentials_are_denied_in_every_mode_and_whatever_allows_them(tmp_path: Path) -> None:
    """B20"""
    for mode in PermissionMode:
        policy = Policy(["read_file"], rules=[Rule("yes", ALLOW)], mode=mode)
        for path in ("~/.ssh/id_rsa", "a/.env", "/etc/passwd", ".aws"):
            found = judged(policy, ReadFile(), tmp_path, path=path)
            assert found[:2] == (DENY, "sensitive-path"), (mode, path)


# Approval


def test_a_call_that_needs_approval_pauses_and_runs_once_when_approved(tmp_path: Path) -> None:
    """A23, B21"""
    player, events = harness([DEPLOY, DONE], FARM, layers=[Policy()], cwd=tmp_path)
    run = asyncio.run(player.run("go"))
    assert run.status is Status.PAUSED
    assert not (tmp_path / "deployments.log").exists()
    run.approve()
    asyncio.run(player.resume(run))
    check(run, events)
    assert (tmp_path / "deployments.log").read_text(encoding="utf-8") == "build-102\n"
    assert kinds(events).count("verdict") == 1
    (start,) = [event for event in events if event.type == "tool_start"]
    assert start.data["rule"] == "approved:default"


def test_two_approved_edits_of_one_file_both_happen(tmp_path: Path) -> None:
    """issue 4, sharp fault 4"""
    both = turn(call("write", "a", path="f", text="one"), call("write", "b", path="f", text="two"))
    player, events = harness([both, DONE], [write], layers=[Policy()], cwd=tmp_path)
    run = asyncio.run(player.run("go"))
    for _ in range(2):
        run.approve()
        asyncio.run(player.resume(run))
    check(run, events)
    assert outcomes(run) == [("a", "ok"), ("b", "ok")]
    assert (tmp_path / "f").read_text(encoding="utf-8") == "one\ntwo\n"


def test_an_answer_counts_also_under_another_policy(tmp_path: Path) -> None:
    """B21: nothing runs on an old answer, and DENY stays DENY."""
    for later, ends in ((Policy(["deploy_prod"]), "denied"), (Policy(()), "denied")):
        player, _ = harness([DEPLOY, DONE], FARM, layers=[Policy()], cwd=tmp_path)
        run = asyncio.run(player.run("go"))
        run.deny("not on a Friday") if later.allowed_tools else run.approve()
        other = Harness(player.model, FARM, layers=[later], cwd=tmp_path)
        asyncio.run(other.resume(run))
        while run.status is Status.PAUSED:
            run.deny("not on a Friday")
            asyncio.run(other.resume(run))
        assert outcomes(run) == [("deploy", ends)]
        assert run.answer is None
    assert list(tmp_path.iterdir()) == []


def test_what_was_approved_survives_a_restart_and_counts_once(tmp_path: Path) -> None:
    """P05"""
    player, events = harness([DEPLOY, DEPLOY, DONE], FARM, layers=[Policy()], cwd=tmp_path)
    asyncio.run(player.run("go"))
    again = refold(events)
    again.approve()
    other = Harness(player.model, FARM, layers=[Policy()], cwd=tmp_path)
    asyncio.run(other.resume(again))
    assert again.status is Status.PAUSED, "the second call is another call"
    assert (tmp_path / "deployments.log").read_text(encoding="utf-8") == "build-102\n"


def test_always_allows_exactly_the_same_call_and_says_so(tmp_path: Path) -> None:
    def always(request: ApprovalRequest) -> Approval:
        asked.append(request.arguments["text"])
        return request.approve(remember=True)

    asked: list[str] = []
    turns = [call("write", f"c{at}", path="f", text=text) for at, text in enumerate("aab")]
    run, events = play([*turns, DONE], [write], layers=[Policy(approver=always)], cwd=tmp_path)
    assert asked == ["a", "b"]
    starts = [event.data["rule"] for event in events if event.type == "tool_start"]
    assert starts == ["approved:default", "always:c0", "approved:default"]
    assert run.output == "done"


def test_always_does_not_pass_a_rule_that_denies(tmp_path: Path) -> None:
    """A23: DENY never reaches an approver."""
    count = iter([False, True])
    rule = Rule("second", DENY, when=lambda _: next(count))
    turns = [DEPLOY, call("deploy_prod", "again", build_id="build-102"), DONE]
    policy = Policy(rules=[rule], approver=lambda r: r.approve(remember=True))
    run, _ = play(turns, FARM, layers=[policy], cwd=tmp_path)
    assert outcomes(run) == [("deploy", "ok"), ("again", "denied")]


def test_edited_arguments_run_and_the_model_is_told(tmp_path: Path) -> None:
    """P05"""
    edited = {"path": "f", "text": "better"}
    policy = Policy(approver=lambda request: request.approve(edited))
    run, _ = play([call("write", path="f", text="x"), DONE], [write], layers=[policy], cwd=tmp_path)
    first = run.history.messages[2]["tool_result"].splitlines()[0]
    assert json.dumps(edited, separators=(",", ":")) in first
    assert (tmp_path / "f").read_text(encoding="utf-8") == "better\n"


def test_edited_arguments_that_are_denied_do_not_run(tmp_path: Path) -> None:
    policy = Policy(approver=lambda request: request.approve({"path": ".env", "text": "x"}))
    run, _ = play([call("write", path="f", text="x")], [write], layers=[policy], cwd=tmp_path)
    assert run.status is Status.PAUSED
    assert run.pause is not None
    assert "Credentials" in run.pause["problem"]
    assert list(tmp_path.iterdir()) == []


def test_a_denied_call_never_reaches_the_approver() -> None:
    """B21"""

    def never(request: ApprovalRequest) -> Approval:
        raise AssertionError("it was asked")

    policy = Policy({"add"}, approver=never)
    run, _ = play([DEPLOY, DONE], FARM, layers=[policy])
    (note,) = run.notes[EventType.VERDICT]
    assert note == {
        "call_id": "deploy",
        "tool": "deploy_prod",
        "verdict": "deny",
        "rule": "allowed-tools",
        "reason": "It isn't on the list of allowed tools.",
    }


def test_an_allowed_call_leaves_no_event_of_its_own_and_its_start_names_the_rule() -> None:
    """A11"""
    run, events = play([LOOK, DONE], FARM, layers=[Policy()])
    assert "verdict" not in kinds(events)
    (start,) = [event for event in events if event.type == "tool_start"]
    assert start.data["rule"] == "read-only"
    assert run.output == "done"


def test_a_policy_judges_by_the_tool_that_is_called_not_by_its_name() -> None:
    """B07: the same policy may serve two harnesses."""

    @tool(name="same", read_only=True)
    def reads() -> str:
        """Read."""
        return ""

    @tool(name="same")
    def changes() -> str:
        """Change."""
        return ""

    policy = Policy(approver=approve_all)
    for each, expected in ((reads, ALLOW), (changes, ASK), (reads, ALLOW)):
        assert verdict(policy, each) is expected
    assert isinstance(LOOK, ToolCall)
