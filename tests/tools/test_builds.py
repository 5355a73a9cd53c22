"""The story's tools, on a real folder."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.builds import TOOLS, add, read_build
from mini_harness.tools.call import Call
from tests.loops import DONE, call, play


def use(name: str, folder: Path, **arguments: Any) -> ToolResult:
    made = Call(TOOLS[name], "c", arguments)
    return asyncio.run(made.tool.execute(made.fresh(), ToolExecutionContext(folder)))


@pytest.fixture
def farm(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "build-102.log").write_text("1 failed\n", encoding="utf-8")
    (tmp_path / "secret.log").write_text("secret", encoding="utf-8")
    return tmp_path


def test_the_demo_tools_are_those_of_the_document() -> None:
    """A02"""
    assert (add.name, add.description) == ("add", "Add two integers.")
    assert (read_build.name, read_build.description) == ("read_build", "Read build status.")
    assert add(2, 3) == 5
    assert list(add.to_api_schema()["input_schema"]["properties"]) == ["a", "b"]


@pytest.mark.parametrize(
    ("build", "status"),
    [
        ("build-101", "passed"),
        ("build-102", "failed"),
        ("build-103", "not found"),
        ("", "not found"),
    ],
)
def test_a_build_has_the_status_of_the_document(build: str, status: str) -> None:
    """A02"""
    assert read_build(build) == status
    run, _ = play([call("read_build", build_id=build), DONE], TOOLS.values())
    assert run.history.messages[2]["tool_result"] == status


def test_a_registry_is_a_plain_dict_by_name() -> None:
    """A03"""
    assert list(TOOLS) == ["add", "read_build", "read_log", "rerun_build", "deploy_prod"]
    assert all(tool.name == name for name, tool in TOOLS.items())


def test_a_log_is_read_from_the_folder_of_the_harness(farm: Path) -> None:
    assert use("read_log", farm, build_id="build-102") == ToolResult("1 failed\n")
    assert use("read_log", farm, build_id="build-101").is_error


@pytest.mark.parametrize("build", ["../secret", "/etc/passwd", "build-102/../../secret", "", "\0"])
def test_only_a_known_build_has_a_log(farm: Path, build: str) -> None:
    """C24"""
    result = use("read_log", farm, build_id=build)
    assert result.is_error
    assert "There is no log of" in result.output


@pytest.mark.parametrize(
    ("name", "file"), [("rerun_build", "reruns.log"), ("deploy_prod", "deployments.log")]
)
def test_a_change_leaves_its_trace_in_the_folder(farm: Path, name: str, file: str) -> None:
    assert not use(name, farm, build_id="build-101").is_error
    assert not use(name, farm, build_id="build-102").is_error
    assert use(name, farm, build_id="build-999").is_error
    assert (farm / file).read_text(encoding="utf-8") == "build-101\nbuild-102\n"


def test_the_tools_declare_what_they_do() -> None:
    """B04: policy, retry and resume follow from it"""
    arguments = {"a": 1, "b": 2}
    made = [
        Call(tool, "c", arguments if name == "add" else {"build_id": "build-101"})
        for name, tool in TOOLS.items()
    ]
    assert [one.name for one in made if one.read_only] == ["add", "read_build", "read_log"]
    assert [one.name for one in made if not one.repeatable] == ["rerun_build", "deploy_prod"]
