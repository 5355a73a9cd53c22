"""All built-in tools, in one place."""

import ast
import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mini_harness
from mini_harness import Harness, Policy, ScriptedModel, ToolRegistry, create_default_tool_registry
from mini_harness.tools import default
from mini_harness.tools.base import BaseTool
from mini_harness.tools.function import tool

PACKAGE = Path(mini_harness.__file__).parent
NAMES = [
    "read_file",
    "write_file",
    "edit_file",
    "list_files",
    "glob",
    "grep",
    "bash",
    "tool_search",
    "ask_user",
    "todo",
]
SHOUT = """
from pydantic import BaseModel

from mini_harness.tools.base import BaseTool, ToolResult


class ShoutInput(BaseModel):
    text: str


class Shout(BaseTool):
    name = "shout"
    description = "Say it louder."
    input_model = ShoutInput

    def is_read_only(self, arguments):
        return True

    def paths(self, arguments):
        return ()

    async def execute(self, arguments, context):
        return ToolResult(arguments.text.upper())
"""
USE = """
import asyncio
from mini_harness import Harness, Policy, ScriptedModel, create_default_tool_registry

registry = create_default_tool_registry()
print([each["name"] for each in registry.to_api_schema()][-1])
calls = [("shout", {"text": "hi"}), ("shout", {"txt": "hi"}), ("tool_search", {"query": "louder"})]
script = [{"type": "tool", "name": n, "arguments": a} for n, a in calls]
model = ScriptedModel([*script, {"type": "final", "output": "done"}])
run = asyncio.run(Harness(model, registry, layers=[Policy()]).run("go"))
for message in run.history.messages:
    if message["role"] == "tool":
        print(message["tool_result"].splitlines()[-2:])
"""


def test_the_registry_holds_all_of_them_in_order() -> None:
    """B16"""
    assert create_default_tool_registry().names() == NAMES


def test_each_says_what_it_does_and_what_each_field_means() -> None:
    """B05: the schema is all that a model sees"""
    for schema in create_default_tool_registry().to_api_schema():
        assert schema["description"].endswith(".")
        for name, field in schema["input_schema"]["properties"].items():
            assert field.get("description"), f"{schema['name']}.{name}"


def objects(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in a schema that has properties of its own."""
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield place, schema
        for key, item in schema.items():
            yield from objects(item, f"{place}/{key}")
    elif isinstance(schema, list):
        for item in schema:
            yield from objects(item, place)


def test_no_schema_takes_unknown_keys_at_any_level() -> None:
    """issue 5; report T04"""
    found = [
        (schema["name"], place, each)
        for schema in create_default_tool_registry().to_api_schema()
        for place, each in objects(dict(schema["input_schema"]))
    ]
    assert ("todo", "/$defs/TodoItem") in [(name, place) for name, place, _ in found]
    assert len(found) > len(NAMES)
    for name, place, each in found:
        assert each.get("additionalProperties") is False, f"{name}{place}"


def test_to_add_a_tool_one_place_is_touched(tmp_path: Path) -> None:
    """issue 5, B32: schema, validation, policy, record and search follow from it"""
    copy = tmp_path / "mini_harness"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "course"))
    before = {path: path.read_bytes() for path in copy.rglob("*.py")}
    (copy / "tools" / "shout.py").write_text(SHOUT, encoding="utf-8")
    place = copy / "tools" / "default.py"
    text = place.read_text(encoding="utf-8")
    text = text.replace("    Todo,\n)", "    Todo,\n    Shout,\n)")
    text = text.replace("\nif TYPE", "\nfrom mini_harness.tools.shout import Shout\n\nif TYPE")
    place.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-c", USE],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stderr == ""
    last, *seen = done.stdout.splitlines()
    assert last == "shout"
    assert seen == [
        "['HI']",
        "['- txt: unknown argument', 'Known arguments: text.']",
        "['shout: Say it louder.']",
    ]
    touched = [p for p, content in before.items() if p.read_bytes() != content]
    assert touched == [place]


def test_nowhere_else_does_the_package_name_its_tools() -> None:
    """issue 5: the count behind the test above; the package's own names are for importing them"""
    made = {each.__name__: each.__module__ for each in default.BUILT_IN if isinstance(each, type)}
    assert len(made) == len(NAMES)
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        if module in ("mini_harness.tools.default", "mini_harness.__init__") or "course" in module:
            continue
        foreign = {name for name in identifiers(path) & set(made) if made[name] != module}
        assert not foreign, module


def identifiers(path: Path) -> set[str]:
    """All names that a module's code uses or imports. What stands in a text is no code."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.name)
    return found


def test_who_asks_the_user_is_given_in_one_place() -> None:
    """B03"""
    registry = create_default_tool_registry(ask=lambda question, choices: f"{question} yes")
    assert registry.names() == NAMES
    ask = {"type": "tool", "name": "ask_user", "arguments": {"question": "Now?"}}
    model = ScriptedModel([ask, {"type": "final", "output": "done"}])
    run = asyncio.run(Harness(model, registry, layers=[Policy()]).run("go"))
    assert run.history.messages[2]["tool_result"] == "Now? yes"


class Server:
    """Stands for an MCP server, as far as a registry needs one."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def tools(self) -> list[BaseTool]:
        @tool(paths=())
        def other() -> str:
            """Come from elsewhere."""
            return ""

        made = []
        for name in self._names:
            one = tool(name=name, paths=())(other.handler)
            made.append(one)
        return [*made]


def test_the_tools_of_servers_come_after_the_built_in_ones() -> None:
    """B17"""
    one: Any = Server("mcp__a__x")
    two: Any = Server("mcp__b__x", "mcp__b__y")
    assert create_default_tool_registry(one).names() == [*NAMES, "mcp__a__x"]
    both = create_default_tool_registry([one, two]).names()
    assert both == [*NAMES, "mcp__a__x", "mcp__b__x", "mcp__b__y"]


def test_two_tools_of_one_name_are_refused() -> None:
    servers: Any = [Server("mcp__a__x"), Server("mcp__a__x")]
    with pytest.raises(ValueError, match="Two tools are called 'mcp__a__x'"):
        create_default_tool_registry(servers)
    builtin: Any = Server("bash")
    with pytest.raises(ValueError, match="Two tools are called 'bash'"):
        create_default_tool_registry(builtin)


def test_two_registries_share_no_tool() -> None:
    one, two = create_default_tool_registry(), create_default_tool_registry()
    assert isinstance(one, ToolRegistry)
    assert all(one.get(name) is not two.get(name) for name in NAMES)


@pytest.mark.parametrize("wrong", ["mcp-server-time", 7, ["npx"]])
def test_what_is_no_server_is_told_so(wrong: Any) -> None:
    with pytest.raises(TypeError, match="is no MCP server: give a McpServer"):
        create_default_tool_registry(wrong)
