"""Use in a notebook what a save cell has just written: its module, loaded afresh."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from functools import partial
from importlib import import_module, invalidate_caches
from importlib.util import cache_from_source
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any

from mini_harness.course.exercises import PACKAGE
from mini_harness.course.names import bound
from mini_harness.course.trouble import Told, explained, lacking, last_line

_shown: dict[str, dict[str, Any]] = {}
"""What each module's save cell put into the notebook: module -> name -> object."""


_stamps: dict[str, tuple[int, int]] = {}
"""The learner's loaded modules -> time and size of their files."""


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


def follow(notebook: dict[str, Any]) -> None:
    """Before a cell runs: load again what somebody else changed, an editor or `reset`."""
    now = dict(_loaded())
    changed = any(_stamps.get(name, stamp) != stamp for name, stamp in now.items())
    if changed:
        _forget()
        _load_all_again(list(_shown), notebook)
    else:
        _stamps.update(now)


def _loaded() -> Iterator[tuple[str, tuple[int, int]]]:
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.partition(".")[0] == PACKAGE and file is not None:
            try:
                found = Path(file).stat()
            except OSError:  # it is gone, and what was loaded of it stays
                continue
            yield name, (found.st_mtime_ns, found.st_size)


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
    _forget()
    sys.modules.pop(f"{PACKAGE}.{module}", None)
    fault = None
    try:
        loaded = load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever it is, the learner reads it
        fault = explained(module, error)
    if fault is not None:  # raised out here there is no error behind it that would be shown too
        raise NotLoaded(fault)
    names = [name for name in bound(source).defined if not name.startswith("_")]
    _shown[module] = {name: value for name, value in vars(loaded).items() if name in names}
    notebook.update(_shown[module])
    _load_all_again([other for other in _shown if other != module], notebook)


def _forget() -> None:
    """All of the learner's modules, since any may hold a function of the old one.

    What was run without a file has nothing to come back from, so it stays.
    """
    for name, old in list(sys.modules.items()):
        if name.partition(".")[0] == PACKAGE and old.__spec__ is not None:
            del sys.modules[name]
    _stamps.clear()
    invalidate_caches()
    linecache.checkcache()


def _load_all_again(modules: Iterable[str], notebook: dict[str, Any]) -> None:
    """Say which of these don't load any more, the file that is at fault first."""
    lost: dict[str, list[str]] = {}
    for module in modules:
        try:
            _load_again(module, notebook)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the learner is told
            why = lacking(error) or last_line(error)
            lost.setdefault(why, []).append(f"{PACKAGE}/{module}.py")
    for why, files in lost.items():
        print(f"{why}\nSo this doesn't load any more: {', '.join(files)}.")


def _load_again(module: str, notebook: dict[str, Any]) -> None:
    """Another module's names, where the notebook still holds what its save cell had put there.

    What that module prints was read when its own cell ran. Raises what its code raises.
    """
    with redirect_stdout(StringIO()):
        loaded = import_module(f"{PACKAGE}.{module}")
    for name, old in _shown[module].items():
        if notebook.get(name) is old and hasattr(loaded, name):
            notebook[name] = _shown[module][name] = getattr(loaded, name)
