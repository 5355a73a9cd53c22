"""Use in a notebook what a save cell has just written: its module, loaded afresh."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module, invalidate_caches
from importlib.util import cache_from_source
from io import StringIO
from pathlib import Path
from traceback import extract_tb, format_exception_only
from types import ModuleType
from typing import Any

from mini_harness.course.exercises import PACKAGE
from mini_harness.course.guard import Told, bound

_shown: dict[str, dict[str, Any]] = {}
"""What each module's save cell put into the notebook: module -> name -> object."""


class NotLoaded(Told):
    """Python can't read what is in a save cell, or running it raised."""


def renew(module: str, path: Path, notebook: dict[str, Any]) -> None:
    """Import `path` afresh as the learner's `module`, and put the names it defines into `notebook`.

    Raises NotLoaded.
    """
    # Of two versions of one length, saved within a second, Python would take the older one.
    Path(cache_from_source(str(path))).unlink(missing_ok=True)
    source = path.read_text(encoding="utf-8")
    _load(module, source, partial(import_module, f"{PACKAGE}.{module}"), notebook)


def renew_unsaved(module: str, source: str, notebook: dict[str, Any]) -> None:
    """The same for code that couldn't be written: until the kernel ends it lives without a file."""
    _load(module, source, partial(_run, module, source), notebook)


def _run(module: str, source: str) -> ModuleType:
    made = ModuleType(f"{PACKAGE}.{module}")
    file = f"{PACKAGE}/{module}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    sys.modules[made.__name__] = made
    exec(compile(source, file, "exec"), vars(made))
    return made


def _load(
    module: str, source: str, load: Callable[[], ModuleType], notebook: dict[str, Any]
) -> None:
    _forget(module)
    fault = None
    try:
        loaded = load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever it is, the learner reads it
        fault = _explained(module, error)
    if fault is not None:  # raised out here there is no error behind it that would be shown too
        raise NotLoaded(fault)
    names = [name for name in bound(source).defined if not name.startswith("_")]
    _shown[module] = {name: value for name, value in vars(loaded).items() if name in names}
    notebook.update(_shown[module])
    for other in [other for other in _shown if other != module]:
        _load_again(other, notebook)


def _forget(module: str) -> None:
    """All of the learner's modules, since any may hold a function of the old one.

    What was run without a file has nothing to come back from, so it stays.
    """
    for name, old in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE and old.__spec__ is not None:
            del sys.modules[name]
    sys.modules.pop(f"{PACKAGE}.{module}", None)
    invalidate_caches()
    linecache.checkcache()


def _load_again(module: str, notebook: dict[str, Any]) -> None:
    """Another module's names, where the notebook still holds what its save cell had put there.

    What that module prints was read when its own cell ran.
    """
    try:
        with redirect_stdout(StringIO()):
            loaded = import_module(f"{PACKAGE}.{module}")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the learner is told
        print(f"{PACKAGE}/{module}.py doesn't load any more: {_named(error)}")
        return
    for name, old in _shown[module].items():
        if notebook.get(name) is old and hasattr(loaded, name):
            notebook[name] = _shown[module][name] = getattr(loaded, name)


def _explained(module: str, error: BaseException) -> str:
    """Where it stopped, that line, and the error: what helps of a traceback."""
    *above, last = "".join(format_exception_only(error)).rstrip().split("\n")
    if isinstance(error, SyntaxError) and _is_own(error.filename):
        where = f"{_relative(error.filename)}, line {error.lineno}"
        code = [line for line in above if not line.startswith("  File ")]
    elif frames := [each for each in extract_tb(error.__traceback__) if _is_own(each.filename)]:
        where = f"{_relative(frames[-1].filename)}, line {frames[-1].lineno}"
        code = [f"    {frames[-1].line}"]
    else:
        where, code = f"{PACKAGE}/{module}.py", []
    return "\n".join([f"Python stops in {where}.", *code, last])


def _is_own(filename: str | None) -> bool:
    return Path(filename or "").parent.name == PACKAGE


def _relative(filename: str | None) -> str:
    return f"{PACKAGE}/{Path(filename or '').name}"


def _named(error: BaseException) -> str:
    return "".join(format_exception_only(error)).rstrip().rpartition("\n")[2]
