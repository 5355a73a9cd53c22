"""Which names a piece of code would bind, without running it."""

from __future__ import annotations

import ast
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """What a piece of code binds at its top level."""

    defined: frozenset[str]
    imported: frozenset[str]


def bound(source: str) -> Names:
    """The names that running this code would bind; none for code that Python can't read."""
    reader = _Reader()
    with suppress(SyntaxError):  # a magic, or half-written code: its names are just not known
        reader.visit(ast.parse(source.removeprefix("\ufeff")))
    return Names(frozenset(reader.defined), frozenset(reader.imported))


class _Reader(ast.NodeVisitor):
    """Goes into statements, not into what has names of its own."""

    def __init__(self) -> None:
        self.defined: set[str] = set()
        self.imported: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self.defined.add(node.id)

    def visit_FunctionDef(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    ) -> None:
        self.defined.add(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_ListComp(self, node: ast.AST) -> None:
        """Its variables are gone when it is done."""

    visit_SetComp = visit_DictComp = visit_GeneratorExp = visit_Lambda = visit_ListComp

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.imported.add(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import
