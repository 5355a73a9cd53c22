"""The exact source text of a symbol, read from its file: `mini_harness.protocol.ToolCall`."""

import ast
import difflib
import importlib
import importlib.util
from pathlib import Path

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Statement = Definition | ast.Assign | ast.AnnAssign


class IncludeError(Exception):
    """A symbol that can't be included; the text says why and what to write instead."""


def symbol_source(symbol: str, *, docstring: bool = True) -> str:
    """The source of a class, function, method or assignment, decorators too, from column 0.

    `symbol` is a module, then a name in it, then perhaps a name in that class. The file is read
    afresh each time. `docstring=False` leaves out the symbol's own docstring. Raises IncludeError.
    """
    file, names = _find_file(symbol)
    text = file.read_text(encoding="utf-8")
    node: ast.Module | Statement = ast.parse(text)
    for name in names:
        node = _find(name, node, symbol)
    assert not isinstance(node, ast.Module)
    lines = text.split("\n")
    numbers = _line_numbers(node) if docstring else _without_docstring(node, lines, symbol)
    indent = " " * node.col_offset
    return "\n".join(lines[number - 1].removeprefix(indent) for number in numbers)


def _find_file(symbol: str) -> tuple[Path, list[str]]:
    """The module's file, and the names after the module; the longest module wins."""
    parts = symbol.split(".")
    importlib.invalidate_caches()
    for length in range(len(parts) - 1, 0, -1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        if spec is not None and spec.origin and spec.origin.endswith(".py"):
            return Path(spec.origin), parts[length:]
    raise IncludeError(f"no module found for {symbol!r}: write module.name or module.Class.name")


def _find(name: str, node: ast.Module | Statement, symbol: str) -> Statement:
    if not isinstance(node, ast.Module | ast.ClassDef):
        raise IncludeError(f"{symbol!r}: {name!r} can't be looked up in what isn't a class")
    named = [(own, child) for child in node.body for own in names_of(child)]
    found = [child for own, child in named if own == name]
    if len(found) > 1:
        raise IncludeError(f"{symbol!r} is defined {len(found)} times: include something else")
    if not found:
        near = difflib.get_close_matches(name, [own for own, _ in named])
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise IncludeError(f"{symbol!r}: nothing named {name!r} is defined there{hint}")
    statement = found[0]
    assert isinstance(statement, Statement)
    return statement


def names_of(node: ast.stmt) -> list[str]:
    """The names that a class, function or assignment gives; no others are looked for."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            return [target.id for target in node.targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def _line_numbers(node: Statement) -> list[int]:
    decorators = node.decorator_list if isinstance(node, Definition) else []
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    return list(range(first, _end(node) + 1))


def _without_docstring(node: Statement, lines: list[str], symbol: str) -> list[int]:
    """All lines but the docstring's and the blank ones right after it."""
    if not isinstance(node, Definition) or ast.get_docstring(node) is None:
        raise IncludeError(f"{symbol!r} has no docstring: leave out `without docstring`")
    own = node.body[0]
    if len(node.body) == 1 or own.lineno == node.lineno:
        raise IncludeError(f"{symbol!r} is nothing without its docstring: include it whole")
    last = _end(own)
    while not lines[last].strip():
        last += 1
    return [n for n in _line_numbers(node) if not own.lineno <= n <= last]


def _end(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno
