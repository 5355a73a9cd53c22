"""The suite of v0b: right answers pass however they are written, and every check can fail."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from mini_harness.course.conformance import Subject, Wrong, conformance
from mini_harness.course.exercises import exercise
from mini_harness.course.judge import judge
from mini_harness.tools.base import Tool
from tests.course.mutants import faults

pytestmark = pytest.mark.once

NAMES = ("describe", "edit", "adapt")
SOLUTIONS = {name: exercise(f"v0b-{name}").solution for name in NAMES}
ACT = exercise("v0-act").solution


def subject(source: str) -> Subject:
    namespace: dict[str, Any] = {"__name__": "a_mutant"}
    exec(source, namespace)
    find: Callable[[str], Any] = namespace.__getitem__
    return Subject("a mutant", find)


RIGHT = {
    "describe": {
        "closed by hand, faults as pydantic says them": """
import inspect, json, typing
import pydantic
def fields(function):
    hints = typing.get_type_hints(function)
    hints.pop("return", None)
    given = inspect.signature(function).parameters
    return {name: (hint, given[name].default if given[name].default is not inspect._empty else ...)
            for name, hint in hints.items()}
def shut(node):
    if isinstance(node, dict):
        if node.get("type") == "object" and "properties" in node:
            node["additionalProperties"] = False
        for each in node.values():
            shut(each)
    elif isinstance(node, list):
        for each in node:
            shut(each)
    return node
def describe(function):
    model = pydantic.create_model("Arguments", **fields(function))
    doc = function.__doc__.strip()
    schema = shut(model.model_json_schema())
    return dict(name=function.__name__, description=doc, input_schema=schema)
def check_arguments(function, arguments):
    config = pydantic.ConfigDict(strict=True)
    model = pydantic.create_model("Arguments", __config__=config, **fields(function))
    try:
        parsed = model.model_validate_json(json.dumps(arguments), extra="forbid")
    except pydantic.ValidationError as error:
        return f"{error} Arguments: {list(model.model_fields)}"
    return {name: getattr(parsed, name) for name in model.model_fields}
""",
        "a TypeAdapter for each parameter": """
import inspect, json
from pydantic import TypeAdapter, ValidationError
def shut(node):
    if isinstance(node, list):
        return [shut(each) for each in node]
    if not isinstance(node, dict):
        return node
    node = {key: shut(each) for key, each in node.items()}
    return {**node, "additionalProperties": False} if "properties" in node else node
def describe(function):
    properties, required, defs = {}, [], {}
    for name, each in inspect.signature(function).parameters.items():
        schema = TypeAdapter(each.annotation).json_schema()
        defs.update(schema.pop("$defs", {}))
        if each.default is each.empty:
            required.append(name)
        else:
            schema["default"] = each.default
        properties[name] = schema
    schema = {"type": "object", "properties": properties, "required": required, "$defs": defs}
    about = {"name": function.__name__, "description": inspect.getdoc(function)}
    return {**about, "input_schema": shut(schema)}
def check_arguments(function, arguments):
    parameters = inspect.signature(function).parameters
    if not isinstance(arguments, dict):
        return f"Give an object with the keys {list(parameters)}."
    wrong = [f"{key} isn't known" for key in arguments if key not in parameters]
    fits = {}
    for name, each in parameters.items():
        if name not in arguments:
            if each.default is each.empty:
                wrong.append(f"{name} is missing")
            continue
        try:
            sent = json.dumps(arguments[name])
            adapter = TypeAdapter(each.annotation)
            fits[name] = adapter.validate_json(sent, strict=True, extra="forbid")
        except ValidationError as error:
            wrong.append(f"{name}: {error.errors(include_url=False)}")
    return f"{wrong}; known: {list(parameters)}" if wrong else fits
""",
    },
    "edit": {
        "regular expressions that look ahead, and a temporary file": """
import os, re, stat, tempfile
def edit(path, old, new):
    with open(path, "rb") as file:
        data = file.read()
    ends = b"\\r\\n" if data.count(b"\\r\\n") == data.count(b"\\n") > 0 else b"\\n"
    wanted, put = (re.sub(b"\\r?\\n", lambda _: ends, text.encode()) for text in (old, new))
    found = [match.start() for match in re.finditer(b"(?=" + re.escape(wanted) + b")", data)]
    if wanted == put or not wanted:
        raise ValueError("nothing would change")
    if not found:
        raise ValueError("not there")
    if len(found) > 1:
        lines = [data[:at].count(b"\\n") + 1 for at in found]
        raise ValueError(f"{len(found)} times, in the lines {lines}")
    handle, name = tempfile.mkstemp(dir=os.path.dirname(path))
    with open(handle, "wb") as file:
        file.write(data[: found[0]] + put + data[found[0] + len(wanted) :])
    os.chmod(name, stat.S_IMODE(os.stat(path).st_mode))
    os.rename(name, path)
    return f"{path}:{data[: found[0]].count(bytes([10])) + 1} changed"
""",
        "text that keeps what it can't decode, and a number in words": """
import os, pathlib
def edit(path: str, old: str, new: str) -> str:
    path = pathlib.Path(path)
    with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
        text = file.read()
    if "\\r\\n" in text:
        old, new = old.replace("\\n", "\\r\\n"), new.replace("\\n", "\\r\\n")
    if old == "" or old == new:
        raise ValueError("Nothing to do.")
    at = text.find(old)
    if at < 0:
        raise ValueError("It isn't there.")
    if text.find(old, at + 1) >= 0:
        raise ValueError("It is there at least twice.")
    whole = text[:at] + new + text[at + len(old):]
    beside = path.parent / (path.name + "~")
    with beside.open("w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(whole)
    beside.chmod(path.stat().st_mode)
    beside.replace(path)
    return "Line " + str(text[:at].count("\\n") + 1) + " of " + str(path)
""",
    },
    "adapt": {
        "classes, and names with a number": """
import string
from mini_harness import Tool
LEGAL = string.ascii_letters + string.digits + "_-"
class RemoteTool(Tool):
    read_only = False
    def __init__(self, name, told, call):
        self.told, self.call = told, call
        self.input_schema = dict(told["inputSchema"], additionalProperties=False)
        super().__init__(name, told["description"], self.ask)
    def ask(self, **arguments):
        try:
            result = self.call(self.told["name"], arguments)
            said = [self.one(part) for part in result["content"]]
            failed = result.get("isError", False)
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {error}")
        if failed:
            raise RuntimeError(" ".join(said))
        return " \\n".join(said)
    def one(self, part):
        match part:
            case {"type": "text", "text": text}:
                return text
            case {"type": "resource", "resource": {"text": text, "uri": uri}}:
                return f"{uri}: {text}"
            case {"type": "text"} | {"type": None}:
                raise ValueError(part)
        return f"({part['type']} of type {part.get('mimeType')})"
def adapt(server, listed, call):
    found = {}
    for told in listed:
        legal = "".join(c if c in LEGAL else "_" for c in f"mcp__{server}__{told['name']}")[:60]
        number = 1
        while legal in found:
            number += 1
            legal = f"{legal[:60]}-{number}"
        found[legal] = RemoteTool(legal, told, call)
    return found
""",
        "partial, and a checksum in every name": """
import re
from dataclasses import dataclass
from functools import partial
from zlib import crc32
from mini_harness import Tool
@dataclass
class RemoteTool(Tool):
    input_schema: dict
    read_only: bool = False
def ask(call, name, /, **arguments):
    try:
        result = call(name, arguments)
        said = "\\n".join([words(each) for each in result["content"]])
    except Exception as error:
        raise RuntimeError(repr(error)) from None
    if result.get("isError"):
        raise RuntimeError(said)
    return said
def words(part):
    if part["type"] == "text":
        return part["text"]
    inner = part.get("resource", part)
    return inner.get("text") or "[" + part["type"] + " " + str(inner.get("mimeType")) + "]"
def adapt(server, listed, call):
    tools = {}
    for told in listed:
        mark = format(crc32(told["name"].encode()), "08x")
        plain = re.sub(r"[^\\w-]", "_", told["name"], flags=re.ASCII)
        name = f"mcp__{server}__{plain}"[:55] + "_" + mark
        about = told.get("description", ""), partial(ask, call, told["name"])
        tools[name] = RemoteTool(name, *about, told["inputSchema"])
    return tools
""",
    },
}


@pytest.mark.parametrize(("name", "how"), [(name, how) for name in RIGHT for how in RIGHT[name]])
def test_a_right_answer_passes_however_it_is_written(name: str, how: str) -> None:
    checks = [each for each in conformance("v0b") if each.exercise == f"v0b-{name}"]
    status, text = judge(subject(RIGHT[name][how]), checks)
    assert status == "passed", text


# What is changed in the solutions, and how the message that follows names the likely cause.
MUTANTS = {
    "describe": [
        ("inspect.getdoc(function)", "None", "Name and description come from the function"),
        ('"name": name', '"name": "tool"', "Name and description come from the function"),
        ('"input_schema": schema', '"schema": schema', "by exactly these names"),
        ('"input_schema": schema', '"input_schema": str(schema)', "A schema is a dictionary"),
        ("(each.annotation, ...", "(str, ...", "one field for each parameter"),
        ("else each.default)", "else ...)", "One without has `...` as its default"),
        ("... if each.default is each.empty", "0 if each.default is each.empty", "may be left out"),
        ("else each.default)", "else 7)", "take them from the signature"),
        ("(schema, *schema", "(*[], *schema", "The schema lets unknown keys by"),
        ('(schema, *schema.get("$defs", {}).values())', "(schema,)", "What lies in `$defs`"),
        (
            'if "properties" in each:\n            each["additionalProperties"] = False\n',
            'each["additionalProperties"] = False\n'
            '    for each in schema["properties"].values():\n'
            '        each["additionalProperties"] = False\n',
            "Close only what has `properties`",
        ),
        (
            "return dict(model.model_validate_json(",
            'return "" and dict(model.model_validate_json(',
            "These fit",
        ),
        ("return dict(model", "return (model", "`dict(parsed)`"),
        (
            'return dict(model.model_validate_json(sent, strict=True, extra="forbid"))',
            'model.model_validate_json(sent, strict=True, extra="forbid")\n'
            "        return arguments",
            "as the function takes them",
        ),
        (
            "sent = json.dumps(arguments)\n"
            '        return dict(model.model_validate_json(sent, strict=True, extra="forbid"))',
            'return dict(model.model_validate(arguments, strict=True, extra="forbid"))',
            "say that it is JSON",
        ),
        (', extra="forbid"', "", "dropped without a word"),
        ("{'; '.join(said)}", "", "Say which key is at fault"),
        (" Known: {known}", "", "isn't told which keys there are"),
        ("strict=True, ", "", "unless it is told to be strict"),
        (
            "{'; '.join(said)}",
            "{'limit until' if 'forbidden' in str(error) else ''}",
            "Say which field is at fault",
        ),
        ("{'; '.join(said)}. Known: {known}", "{said[0]} of {known[:3]}", "which keys there are"),
        (
            "{'; '.join(said)}. Known: {known}",
            "{said[0]} {known if 'limit' in str(error) else ''}",
            "Say which field is at fault",
        ),
        ("sent = json.dumps(arguments)", "sent = json.dumps({**arguments})", "may send anything"),
        (
            "    try:\n",
            "    if not isinstance(arguments, dict): return {}\n    try:\n",
            "What is no object has to end in a text",
        ),
        (
            "    try:\n",
            "    if set(arguments) == {'lines'}: return {'build_id': 'build-102'}\n    try:\n",
            "A parameter without a default must be there",
        ),
        ("except ValidationError", "except OSError", "Only the model can mend its arguments"),
        ("json.dumps(arguments)", "jason.dumps(arguments)", "That file doesn't know `jason`"),
    ],
    "edit": [
        ("os.replace(beside, file)", "beside.unlink()", "The passage is there once"),
        ('return f"Edited {path}: line {line}."', "return True", "the path and the line"),
        ("+ 1\n    return", "\n    return", "counted from 1"),
        ("if not old or", "if not old or not new or", "An empty `new` deletes"),
        ("if len(places) != 1:", "if not places: return ''\n    if len(places) > 1:", "Look first"),
        ("if len(places) != 1:", "if not places:", "Don't guess"),
        ("if len(places) != 1:", "if before.count(old) != 1:", "misses one that overlaps"),
        (
            "{len(places)} times, not once.",
            "not once.",
            "Say how often it is there",
        ),
        (
            '(f"The passage is in {path} {len(places)} times, not once.")',
            "",
            "The text of the error is all",
        ),
        ("if not old or old == new:", "if not old:", "changes nothing is a mistake"),
        (
            "if not old or old == new:",
            "if not old: return ''\n    if old == new:",
            "An empty passage is everywhere",
        ),
        ('if b"\\r\\n" in before:', "if False:", "Translate `old` before you look"),
        (
            'old, new = (each.replace(b"\\n", b"\\r\\n") for each in (old, new))',
            'old = old.replace(b"\\n", b"\\r\\n")',
            "Translate `new` as well as `old`",
        ),
        (
            "before = file.read_bytes()",
            'before = file.read_bytes().replace(b"\\r\\n", b"\\n")',
            "Text mode turns every CRLF into LF",
        ),
        (
            "before = file.read_bytes()",
            'before = file.read_bytes().removeprefix(b"\\xef\\xbb\\xbf")',
            "The byte order mark belongs to the file",
        ),
        (
            "before = file.read_bytes()",
            'before = file.read_bytes().decode(errors="replace").encode()',
            "Whatever stands beside the passage stays",
        ),
        (
            "before = file.read_bytes()",
            "before = file.read_bytes().decode().encode()",
            "Whatever stands beside the passage stays",
        ),
        ("os.replace(beside, file)", "file.write_bytes(beside.read_bytes())", "half of it is lost"),
        (
            "os.replace(beside, file)",
            "shutil.copy(beside, beside.with_name('x'))\n    os.replace(beside, file)",
            "What was written beside is still there",
        ),
        ("os.replace(beside, file)", "file.unlink()", "has to take the file's place"),
        ("    shutil.copymode(file, beside)\n", "", "permissions of its own"),
        ("before = file.read_bytes()", "file.touch(); before = file.read_bytes()", "Read before"),
        (
            "    before = file.read_bytes()",
            "    if not file.exists(): return 'There is no such file.'\n"
            "    before = file.read_bytes()",
            "takes this for a success",
        ),
        ("raise ValueError(f", "raise LookupError(f", "refused with a ValueError"),
        ("def edit", "async def edit", "Write it with a plain `def`"),
    ],
    "adapt": [
        ("for told in listed:", "for told in listed[:1]:", "Go through all that is listed"),
        ('told.get("description", "")', "name", "its words are passed on"),
        ('told["inputSchema"]', "{}", "its words are passed on"),
        ("return tools\n", "return list(tools)\n", "Return a dictionary"),
        ("RemoteTool(name, told", "RemoteTool('who', told", "The key is the tool's own name"),
        ('re.sub("[^A-Za-z0-9_-]", "_", ', "str(", "No API takes such a name"),
        ("[^A-Za-z0-9_-]", r"[^\\w-]", "No API takes such a name"),
        ("len(found) > 64 or ", "", "cut what is too long"),
        ('f"mcp__{server}__{name}"', 'f"mcp_{name}"', "The server's name comes first"),
        (" or found in taken", "", "Tell them apart"),
        ("sha256(name.encode()).hexdigest()[:8]", "'cut'", "one tool took the place of the other"),
        (
            "sha256(name.encode()).hexdigest()[:8]",
            "str(next(COUNT) + 10**7)",
            "the same in every run",
        ),
        ("found[:55]", "found[:64]", "No API takes such a name"),
        ('asking(told["name"], call)', "asking(name, call)", "by its own names"),
        (
            'asking(told["name"], call)',
            'lambda **given: asking(told["name"], call)(**given)',
            "looks at the loop's variable",
        ),
        (
            "call(name, arguments)",
            "call(name, {k: v for k, v in arguments.items() if v is not None})",
            "None included",
        ),
        ("handler, schema)", "handler, schema, bool(told.get('annotations')))", "taken for it"),
        ('result["content"]', 'result["content"][:1]', "Join the texts of all its parts"),
        ('"\\n".join(', '"".join(', "Join the texts of all its parts"),
        ("        return text\n", "        return [text]\n", "A model reads text"),
        ('part.get("resource", part)', "part", "A resource may hold a text"),
        (
            "    kind, inner",
            '    if "text" not in part: raise ValueError(part)\n    kind, inner',
            "Not every part has a text",
        ),
        (", {inner.get('mimeType')}: not", ": not", "its `mimeType` isn't"),
        ("not shown as text]", "{inner.get('data') or inner.get('blob')}]", "can't read base64"),
        ('return f"[{kind}, ', 'return "" and f"[{kind}, ', "A part was dropped without a word"),
        ('if result.get("isError")', 'if result.get("error")', "it is taken for an answer"),
        ('if result.get("isError")', 'if "isError" in result', "Ask whether it is true"),
        ("raise RuntimeError(text)", "raise RuntimeError('failed')", "Put it into the error"),
        (
            'raise RuntimeError(f"{name} failed: {error!r}") from error',
            "return ''",
            "The error is swallowed",
        ),
        ("{error!r}", "{error}", "with its type: `!r`"),
        ("except Exception", "except LookupError", "Catch it, and raise RuntimeError"),
        ("except Exception as error", "except BaseException as error", "the Stop button too"),
        (
            "            result = call",
            "            result = call(name, arguments) or {'content': []}\n            0 and call",
            "It is a failure, too",
        ),
    ],
}
ROWS = [(name, *row) for name, rows in MUTANTS.items() for row in rows]


@pytest.mark.parametrize(("name", "old", "new", "likely"), ROWS)
def test_what_is_wrong_is_told_by_its_likely_cause(
    name: str, old: str, new: str, likely: str
) -> None:
    """The first check that doesn't hold says it, and says what was called and expected."""
    (fault, *_) = faults_of(name, old, new).values()
    assert likely in fault.likely
    assert all(fault.parts.values())


def test_every_check_is_failed_by_a_mutant() -> None:
    failed = {title for name, old, new, _ in ROWS for title in faults_of(name, old, new)}
    titles = {check.title for check in conformance("v0b")}
    assert failed == titles - ({"Permissions stay."} if os.name != "posix" else set())


def faults_of(name: str, old: str, new: str) -> dict[str, Wrong]:
    """What the checks say of the exercise whose solution the mutant belongs to."""
    assert old in SOLUTIONS[name]
    counted = "from itertools import count\nCOUNT = count()\n" if "COUNT" in new else ""
    mutant = subject(counted + SOLUTIONS[name].replace(old, new))
    return faults("v0b", mutant, lambda graded: graded == f"v0b-{name}")


def test_the_act_of_v0_runs_what_v0b_makes() -> None:
    """B18: a server's failure is one more observation"""
    namespace: dict[str, Any] = {"__name__": "all_of_it"}
    exec("\n".join([ACT, *SOLUTIONS.values()]), namespace)
    told = {"name": "who is?", "inputSchema": {"type": "object"}}
    failed = {"content": [{"type": "text", "text": "no such team"}], "isError": True}
    tools = namespace["adapt"]("oncall", [told], lambda name, arguments: failed)
    tools["edit"] = Tool("edit", "Edit a file.", namespace["edit"])
    act = namespace["act"]
    said = act(tools, {"type": "tool", "name": "mcp__oncall__who_is_", "arguments": {}})
    assert said == "Tool mcp__oncall__who_is_ failed: RuntimeError('no such team')"
    wrong = {"path": __file__, "old": "import", "new": "export"}
    assert "times, not once" in act(tools, {"type": "tool", "name": "edit", "arguments": wrong})
