"""A line of bash is judged where it runs, and not where the harness works."""

from pathlib import Path

import pytest

from mini_harness.command_line import CommandLine
from mini_harness.policy import Judgement, Policy, Rule, Verdict
from mini_harness.shell_words import Unreadable
from mini_harness.tools.call import Call
from mini_harness.tools.shell import Bash


def judged(line: str, policy: Policy, cwd: Path | str = ".") -> Judgement:
    return policy.judge(Call(Bash(), "c", {"command": line}), str(cwd))


@pytest.mark.parametrize(
    "line",
    [
        "cat secret/x", "cd . && cat secret/x", "cat ../a/secret/x", "cd secret && cat x",
        "cd ..; cd a; cat secret/x", "cd ../b || cat secret/x", "pushd secret; cat x",
        "cd -P -- secret; cat x", "(cd ../b); cat secret/x", "bash -c 'cd secret; cat x'",
        "tar -C secret -c x", "cat key", "cd sub && cat ../key", "cd way && cat ../key2",
    ],
)  # fmt: skip
def test_a_line_is_judged_where_it_runs(line: str, tmp_path: Path) -> None:
    """B20, B22: a folder to start in, and ``cd``, hide no path"""
    (tmp_path / "a" / "secret").mkdir(parents=True)
    (tmp_path / "a" / "key").symlink_to("../real.pem")
    (tmp_path / "c" / "d").mkdir(parents=True)
    (tmp_path / "c" / "key2").symlink_to("../real.pem")
    (tmp_path / "a" / "way").symlink_to("../c/d", target_is_directory=True)
    rules = [Rule("no", Verdict.DENY, path="a/secret/**"), Rule("any", Verdict.ALLOW, tool="bash")]
    policy = Policy(rules=rules)
    started = Call(Bash(), "c", {"command": line, "cwd": "a"})
    assert policy.judge(started, tmp_path).verdict is Verdict.DENY
    inside = f"cd a && {line}"
    assert judged(inside, policy, tmp_path).verdict is Verdict.DENY


def test_a_line_goes_home_without_a_folder_and_back_it_is_not_plain(tmp_path: Path) -> None:
    """B20"""
    rule = Rule("home", Verdict.DENY, path="~/x")
    policy = Policy(["bash"], rules=[rule])
    assert judged("cd; cat x", policy, tmp_path).rule == "home"
    assert judged("cd ~/y; cat ../x", policy, tmp_path).rule == "home"
    assert judged("cat x", policy, tmp_path).verdict is Verdict.ALLOW


def test_a_line_that_changes_its_folder_too_often_is_not_read() -> None:
    with pytest.raises(Unreadable, match="too often"):
        CommandLine.read("; ".join(f"cd d{at}" for at in range(7)))
    assert len(CommandLine.read("cd a; " * 20 + "grep -C 3 x f").folders) < 64
    many = "cd a; cat " + " ".join(f"f{at}" for at in range(12_000))
    assert judged(many, Policy(["bash"])).verdict is Verdict.DENY
