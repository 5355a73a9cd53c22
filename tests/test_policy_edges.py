"""Where a policy could be looser than it reads: misspelt, changed, or not told what a call does."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mini_harness.approval import Approval, ApprovalRequest
from mini_harness.loop import Harness
from mini_harness.policy import Judgement, PermissionMode, Policy, Rule, Verdict
from mini_harness.rules import BuiltIn
from mini_harness.run import Status
from mini_harness.tools.base import BaseTool
from mini_harness.tools.builds import TOOLS
from mini_harness.tools.call import Call
from mini_harness.tools.function import tool
from mini_harness.tools.registry import ToolRegistry
from mini_harness.tools.shell import Bash
from tests.loops import DONE, call, harness, kinds, outcomes, play

ALLOW, ASK, DENY = Verdict.ALLOW, Verdict.REQUIRE_APPROVAL, Verdict.DENY
FARM = list(TOOLS.values())
FORBID: Any = "forbid"


@tool(command="line", paths=["folder"])
def shell(line: str, folder: str = ".") -> str:
    """Run a shell line."""
    return line


@tool
def hidden_shell(line: str) -> str:
    """Run a shell line, and declare nothing."""
    return line


def judged(policy: Policy, of: BaseTool, cwd: Path | str = ".", **arguments: Any) -> Judgement:
    return policy.judge(Call(of, "c", arguments), Path(cwd).resolve())


# What a policy says doesn't change


@pytest.mark.parametrize(
    ("name", "value"), [("mode", "plan"), ("rules", ()), ("allowed_tools", frozenset())]
)
def test_a_policy_cannot_be_tightened_in_vain(name: str, value: Any) -> None:
    """A23: what was known of a tool would stay, so the attempt is an error."""
    policy = Policy(["add"], rules=[Rule("x", ALLOW)], mode=PermissionMode.FULL_AUTO)
    judged(policy, TOOLS["add"], a=1, b=1)
    before = getattr(policy, name)
    with pytest.raises(AttributeError):
        setattr(policy, name, value)
    assert getattr(policy, name) == before


@pytest.mark.parametrize("name", [*BuiltIn, "always:x", "approved:default", "a+b", " default "])
def test_a_rule_cannot_take_the_name_of_what_is_built_in(name: str) -> None:
    """A23: a verdict names its rule by its id."""
    with pytest.raises(ValueError, match="id"):
        Rule(str(name), DENY)


# A tool's name that is misspelt


@pytest.mark.parametrize("verdict", [DENY, ASK])
@pytest.mark.parametrize("name", ["deploy_prd", "Deploy_Prod", "deploy-prod"])
def test_a_rule_that_misspells_its_tool_is_an_error_before_anything_runs(
    name: str, verdict: Verdict, tmp_path: Path
) -> None:
    """B22, P04"""
    policy = Policy(rules=[Rule("no-deploy", verdict, tool=name)], mode="full_auto")
    turns = [call("deploy_prod", build_id="build-102"), DONE]
    player, events = harness(turns, FARM, layers=[policy], cwd=tmp_path)
    with pytest.raises(ValueError, match=r"'no-deploy'.*'deploy_prod'.*read_build"):
        asyncio.run(player.run("go"))
    assert "tool_start" not in kinds(events)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "rule",
    [
        Rule("other", DENY, tool="send_mail"),
        Rule("wild", DENY, tool="deploy_prd*"),
        Rule("wild", DENY, tool="[d]eploy_prd"),
        Rule("there", DENY, tool="add"),
        Rule("allows", ALLOW, tool="deploy_prd"),
    ],
)
def test_a_rule_for_a_tool_of_another_harness_is_no_error(rule: Rule) -> None:
    turns = [call("read_build", build_id="build-102"), DONE]
    run, _ = play(turns, FARM, layers=[Policy(rules=[rule])])
    assert run.status is Status.COMPLETED


def test_names_are_compared_again_when_there_are_more_tools() -> None:
    policy = Policy(rules=[Rule("no", DENY, tool="shel")])
    tools = ToolRegistry([TOOLS["add"]])
    turns = [call("add", a=1, b=1), DONE] * 2
    player, _ = harness(turns, layers=[policy])
    player.tools = tools
    asyncio.run(player.run("go"))
    tools.register(shell)
    with pytest.raises(ValueError, match="'shell'"):
        asyncio.run(player.run("go"))


# A tool that runs commands


def test_a_function_may_declare_that_it_runs_a_command(tmp_path: Path) -> None:
    """C22, P01"""
    policy = Policy(["shell"], rules=[Rule("push", DENY, command="git push")], mode="full_auto")
    assert judged(policy, shell, line="ls && rm -rf d")[:2] == (DENY, "command-line")
    assert judged(policy, shell, line="git -C . push").rule == "push"
    assert judged(policy, shell, line="ls $(date)").verdict is ASK
    assert judged(policy, shell, line="ls -la").verdict is ALLOW
    (tmp_path / ".ssh").mkdir()
    assert judged(policy, shell, tmp_path, line="cat config", folder=".ssh").verdict is DENY


def test_a_line_of_a_tool_that_declares_no_paths_may_start_in_any_folder_it_names(
    tmp_path: Path,
) -> None:
    """B20"""

    @tool(command="line")
    def somewhere(line: str, where: str) -> str:
        """Run a shell line somewhere."""
        return line

    (tmp_path / "d" / "secret").mkdir(parents=True)
    policy = Policy(["somewhere"], rules=[Rule("no", DENY, path="d/secret")])
    assert judged(policy, somewhere, tmp_path, line="cat secret/x", where="d").rule == "no"
    assert judged(policy, somewhere, tmp_path, line="cat secret/x", where="e").verdict is ALLOW


@pytest.mark.parametrize("verdict", [DENY, ASK])
def test_a_rule_about_commands_asks_if_its_tool_declares_none(verdict: Verdict) -> None:
    """C22"""
    for mode in ("default", "full_auto"):
        exact = Rule("no-rm", verdict, tool="hidden_shell", command="rm *", reason="No.")
        found = judged(Policy(rules=[exact], mode=mode), hidden_shell, line="ls")
        assert found[:2] == (ASK, "no-rm")
        assert "hidden_shell declares none" in found.reason
        for pattern in ("*", "hidden*", "shell"):
            silent = Rule("no-rm", verdict, tool=pattern, command="rm *")
            found = judged(Policy(rules=[silent], mode=mode), hidden_shell, line="rm x")
            assert found.rule in ("default", "full-auto")
    elsewhere = Rule("no", verdict, tool="hidden_shell", command="rm *", path="a/**")
    assert judged(Policy(rules=[elsewhere]), hidden_shell, line="b").rule == "default"
    allows = Rule("ls", ALLOW, tool="hidden_shell", command="ls *")
    assert judged(Policy(rules=[allows]), hidden_shell, line="ls").rule == "default"


# A tool that declares its paths in another form


def reader(kind: Any) -> BaseTool:
    def read_many(paths: Any) -> str:
        """Read several files."""
        return f"{paths}"

    read_many.__annotations__["paths"] = kind
    return tool(read_only=True, paths=["paths"])(read_many)


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (str, "/etc/shadow"),
        (Path, "/etc/shadow"),
        (list[str], ["a", "/etc/shadow"]),
        (list[Path | None], [None, "/etc/shadow"]),
        (tuple[str, ...], ["/etc/shadow"]),
        (set[str], ["a", "b", "/etc/shadow"]),
        (frozenset[Path], ["/etc/shadow"]),
    ],
)
def test_paths_may_come_in_any_flat_form(kind: Any, given: Any) -> None:
    """B20, B22"""
    policy = Policy(rules=[Rule("etc", DENY, path="/etc/**")], mode="full_auto")
    assert judged(policy, reader(kind), paths=given)[:2] == (DENY, "sensitive-path")
    allowed = Policy(rules=[Rule("here", ASK, path="/else/**")])
    harmless = ["x"] if isinstance(given, list) else "x"
    assert judged(allowed, reader(kind), paths=harmless).verdict is ALLOW


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (dict[str, str], {"a": "/etc/shadow"}),
        (list[list[str]], [["/etc/shadow"]]),
        (list[dict[str, str]], [{"a": "b"}]),
        (int, 3),
        (bytes, "/etc/shadow"),
    ],
)
def test_paths_in_another_form_are_denied_and_never_judged_by_their_looks(
    kind: Any, given: Any
) -> None:
    """P04, B20"""
    turns = [call("read_many", "x", paths=given), DONE]
    run, events = play(turns, [reader(kind)], layers=[Policy(mode="full_auto")])
    assert outcomes(run) == [("x", "denied")]
    assert "policy failed: " in run.history.messages[2]["tool_result"]
    assert "tool_start" not in kinds(events)


def test_the_folder_worked_in_may_have_a_name_with_stars(tmp_path: Path) -> None:
    """B22"""
    here = tmp_path / "w[12]*"
    (here / "private").mkdir(parents=True)
    rules = [Rule("no", DENY, path="private/**"), Rule("ok", ALLOW, tool="bash", command="cat *")]
    assert judged(Policy(rules=rules), Bash(), here, command="cat private/x").rule == "no"
    assert judged(Policy(rules=rules), Bash(), here, command="cat x").rule == "ok"


# Two policies


def test_always_for_one_rule_is_no_answer_to_another(tmp_path: Path) -> None:
    """B21: four eyes see every call, whatever the first two allowed for good."""

    def first(request: ApprovalRequest) -> Approval:
        asked.append("first")
        return request.approve(remember=True)

    def second(request: ApprovalRequest) -> Approval:
        asked.append("second")
        return request.approve() if asked.count("second") == 1 else request.deny("no")

    asked: list[str] = []
    layers = [Policy(approver=first), Policy(rules=[Rule("four-eyes", ASK)], approver=second)]
    turns = [call("deploy_prod", f"c{at}", build_id="build-102") for at in range(2)]
    run, _ = play([*turns, DONE], FARM, layers=layers, cwd=tmp_path)
    assert asked == ["first", "second", "second"]
    assert outcomes(run) == [("c0", "ok"), ("c1", "denied")]


def test_a_no_that_waits_is_not_passed_by_an_always(tmp_path: Path) -> None:
    """B21: the call is allowed for good by one rule, and then another asks about it."""
    turns = [call("deploy_prod", f"c{at}", build_id="build-102") for at in range(2)]
    count = iter([False, True, True])
    later = Rule("later", ASK, when=lambda _: next(count))
    layers = [
        Policy(approver=lambda request: request.approve(remember=True)),
        Policy(["deploy_prod"], rules=[later]),
    ]
    player, _ = harness([*turns, DONE], FARM, layers=layers, cwd=tmp_path)
    run = asyncio.run(player.run("go"))
    assert run.pause is not None
    assert (run.pause["call_id"], run.pause["rule"]) == ("c1", "later")
    run.deny("no")
    other = Harness(player.model, FARM, layers=[Policy()], cwd=tmp_path)
    asyncio.run(other.resume(run))
    assert outcomes(run) in ([("c0", "ok")], [("c0", "ok"), ("c1", "denied")])
    assert (tmp_path / "deployments.log").read_text(encoding="utf-8") == "build-102\n"


@pytest.mark.parametrize(
    "line",
    [
        "printf -v 'a[$(touch PWNED)]' x",
        "test -v 'a[$(touch PWNED)]'",
        "let 'a[`touch PWNED`]=1'",
        "alias ls=rm",
        "hash -p /bin/rm ls",
        "enable -f ./x.so ls",
        "uv run rm -r d",
    ],
)
def test_what_a_builtin_makes_of_its_words_rides_on_no_rule(line: str, tmp_path: Path) -> None:
    everything = Policy(rules=[Rule("all", Verdict.ALLOW, command="*")])
    for policy in (everything, Policy(mode="full_auto"), Policy(["bash"])):
        assert policy.judge(Call(Bash(), "c", {"command": line}), tmp_path)[0] is not Verdict.ALLOW


@pytest.mark.parametrize(
    "line", ["grep -fsecret/x.txt all", "tar -Csecret -cO x", "sort -osecret/x a"]
)
def test_a_path_that_sticks_to_an_option_is_seen(line: str, tmp_path: Path) -> None:
    rules = [Rule("no", Verdict.DENY, path="secret/**"), Rule("yes", Verdict.ALLOW, command="*")]
    found = Policy(rules=rules).judge(Call(Bash(), "c", {"command": line}), tmp_path)
    assert found[:2] == (Verdict.DENY, "no")


def test_a_sentence_may_speak_of_a_file_that_holds_credentials(tmp_path: Path) -> None:
    @tool(read_only=True)
    def search(query: str) -> str:
        """Search."""
        return query

    def verdict(query: str) -> Verdict:
        return Policy().judge(Call(search, "c", {"query": query}), tmp_path)[0]

    assert verdict("how does python-dotenv load .env files") is Verdict.ALLOW
    assert verdict("show /etc/shadow to me") is Verdict.DENY
    assert verdict(".env") is Verdict.DENY


def test_an_allow_rule_bounds_paths_or_commands_and_says_so() -> None:
    with pytest.raises(ValueError, match="nothing bounds the paths of a command"):
        Rule("both", Verdict.ALLOW, path="src/**", command="cat *")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Policy(mode="auto"), "no PermissionMode 'auto': choose default, plan, full_auto"),
        (lambda: Rule("r", FORBID), "no Verdict 'forbid': choose allow, require_approval, deny"),
    ],
)
def test_a_word_that_isnt_on_the_list_is_answered_with_the_list(
    make: Callable[[], object], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        make()
