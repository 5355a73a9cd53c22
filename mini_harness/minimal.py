"""A failing script, made as short as it can be and still fail.

Half of a long script is mostly noise. What is left when nothing more can be taken away says where
to look. The search is delta debugging (Zeller and Hildebrandt, "Simplifying and isolating
failure-inducing input", 2002): take away large parts first, then ever smaller ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Generic, TypeVar

from mini_harness.protocol import Turn

TRIES = 1000
"""How often ``fails`` is asked, unless another bound is given."""

PARTS = ("script", "faults")
"""The fields of a case that can become shorter, in this order."""

T = TypeVar("T")
_I = TypeVar("_I")


@dataclass(frozen=True)
class Minimal(Generic[T]):
    """What is left. ``tries`` is how often ``fails`` was asked.

    If ``is_minimal``, it no longer fails when any one turn, call or fault is taken away. If not,
    the tries were used up before that was known.
    """

    found: T
    tries: int
    is_minimal: bool


def minimise(subject: T, fails: Callable[[T], bool], *, tries: int = TRIES) -> Minimal[T]:
    """Take turns, calls within a turn, and faults away, as long as ``fails`` says True.

    ``subject`` is a sequence of turns, or a dataclass, such as a case, that has one in ``script``
    and may have ``faults``; ``fails`` gets another one of the same kind. A turn keeps at least one
    of its calls, and a dataclass at least one of its turns. What else than True ``fails`` returns
    is no failure, and what it raises goes up. It must say the same each time, and be about one
    failure: a script without its last turn may well fail for another reason.

    Raises ValueError if the subject doesn't fail, or for less than one try, and TypeError for what
    has no turns.
    """
    if tries < 1:
        raise ValueError(f"tries is {tries}, but must be at least 1.")
    search = _Search(subject, fails, tries)
    if not search.still_fails(search.kept):
        raise ValueError("It doesn't fail as it is, so there is nothing to make smaller.")
    is_minimal = search.run()
    return Minimal(search.made(search.kept), search.tried, is_minimal)


@dataclass(frozen=True)
class _Item:
    """One turn or fault, by its place in the subject; and of several calls, which are left."""

    place: int
    calls: tuple[int, ...] | None = None


_Kept = tuple[tuple[_Item, ...], ...]


class _OutOfTries(Exception):
    """The bound is reached."""


class _Search(Generic[T]):
    """The smallest that fails so far, as ``kept``: of each part, which items."""

    def __init__(self, subject: T, fails: Callable[[T], bool], tries: int) -> None:
        self._subject, self._fails, self._tries = subject, fails, tries
        self._names, self._parts = _parts_of(subject)
        self._known: dict[_Kept, bool] = {}
        self.tried = 0
        self.kept: _Kept = tuple(
            tuple(_Item(n, _calls_of(item)) for n, item in enumerate(part)) for part in self._parts
        )

    def run(self) -> bool:
        """Whether it came to an end within the tries."""
        before = None
        try:
            while before != self.kept:
                before = self.kept
                for part in range(len(self._parts)):
                    self._shorten_part(part)
                    self._shorten_turns(part)
        except _OutOfTries:
            return False
        return True

    def still_fails(self, kept: _Kept) -> bool:
        if kept not in self._known:
            if self.tried >= self._tries:
                raise _OutOfTries
            self.tried += 1
            # Could not judge is never yes.
            self._known[kept] = self._fails(self.made(kept)) is True
        return self._known[kept]

    def made(self, kept: _Kept) -> T:
        """The subject with these items alone."""
        parts: list[Any] = [
            _like(part, [_shortened(part[item.place], item.calls) for item in items])
            for part, items in zip(self._parts, kept, strict=True)
        ]
        if self._names is None:
            (made,) = parts
        else:
            made = replace(self._subject, **dict(zip(self._names, parts, strict=True)))  # type: ignore
        result: T = made
        return result

    def _shorten_part(self, part: int) -> None:
        def with_items(items: tuple[_Item, ...]) -> _Kept:
            return (*self.kept[:part], items, *self.kept[part + 1 :])

        def fails(some: tuple[_Item, ...]) -> bool:
            # A case without a turn is none, so it isn't even made.
            may_be_empty = self._names is None or self._names[part] != "script"
            return (bool(some) or may_be_empty) and self.still_fails(with_items(some))

        for items in _shorter(self.kept[part], fails):
            self.kept = with_items(items)

    def _shorten_turns(self, part: int) -> None:
        for index, item in enumerate(self.kept[part]):
            if item.calls is not None:
                self._shorten_calls(part, index, item.calls)

    def _shorten_calls(self, part: int, index: int, calls: tuple[int, ...]) -> None:
        def with_calls(some: tuple[int, ...]) -> _Kept:
            items = self.kept[part]
            item = replace(items[index], calls=some)
            items = (*items[:index], item, *items[index + 1 :])
            return (*self.kept[:part], items, *self.kept[part + 1 :])

        def fails(some: tuple[int, ...]) -> bool:
            return bool(some) and self.still_fails(with_calls(some))

        for some in _shorter(calls, fails):
            self.kept = with_calls(some)


def _shorter(
    items: tuple[_I, ...], fails: Callable[[tuple[_I, ...]], bool]
) -> Iterator[tuple[_I, ...]]:
    """Ever shorter ones that fail. First all is taken away, then halves of it, at last each one."""
    size = len(items)
    while items and size:
        start = 0
        while start < len(items):
            rest = items[:start] + items[start + size :]
            if fails(rest):
                items = rest
                yield items
            else:
                start += size
        size = min(size, len(items) + 1) // 2


def _parts_of(subject: Any) -> tuple[tuple[str, ...] | None, list[Sequence[Any]]]:
    """The names of the fields that can become shorter, if it has fields, and what is in them."""
    if isinstance(subject, Sequence) and not isinstance(subject, str | bytes):
        return None, [subject]
    names = {each.name for each in fields(subject)} if is_dataclass(subject) else set()
    parts = {name: getattr(subject, name) for name in PARTS if name in names}
    for name, part in parts.items():
        if not isinstance(part, Sequence) or isinstance(part, str | bytes):
            raise TypeError(f"{name} must be a list to be made shorter, but it is {part!r:.100}.")
    if "script" not in parts:
        raise TypeError("Give a list of turns, or a dataclass that has one in the field script.")
    return tuple(parts), list(parts.values())


def _calls_of(item: Any) -> tuple[int, ...] | None:
    """The places of the calls in a turn, if there are several."""
    calls = item.calls if isinstance(item, Turn) else item
    is_several = isinstance(calls, list | tuple) and len(calls) > 1
    return tuple(range(len(calls))) if is_several else None


def _shortened(item: Any, calls: tuple[int, ...] | None) -> Any:
    if calls is None:
        return item
    if isinstance(item, Turn):
        return replace(item, calls=tuple(item.calls[n] for n in calls))
    return _like(item, [item[n] for n in calls])


def _like(whole: Sequence[Any], items: list[Any]) -> Any:
    return tuple(items) if isinstance(whole, tuple) else items
