"""What is left of a failing script when nothing can be taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised, attempt
from mini_harness.course.conformance.stage import plain, raised, wrong
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown

TURNS = [f"turn {number}" for number in range(1, 11)]
MOST = 60
"""How often one culprit among 256 turns may be asked for: halves need some 20."""

Fails = Callable[[Sequence[Any]], Any]


def needs(*wanted: str) -> Fails:
    """It fails as long as all of these are there, in any order."""
    return lambda script: set(wanted) <= set(script)


def expect(
    subject: Subject, likely: str, where: str, script: list[str], fails: Fails, wanted: list[str]
) -> None:
    what = f"shrink(script, fails), where {where}"
    given = list(script)
    got = attempt(what, str(wanted), likely, subject.shrink, given, fails)
    if not isinstance(got, list | tuple):
        wrong(what, shown(got), str(wanted), "Return the turns that are left, as a list.")
    if list(got) != wanted:
        wrong(what, shown(got), str(wanted), likely)
    if given != script:
        likely = "The script that was given is somebody else's. Work on a list of your own."
        wrong(what, f"afterwards the script is {given}", "it is as it was", likely)


def _needless(subject: Subject) -> None:
    likely = "A turn can go if it still fails without it."
    for wanted in (["turn 7"], ["turn 2", "turn 9"], TURNS[:3], TURNS):
        where = f"it fails with {' and '.join(wanted)} out of ten turns"
        expect(subject, likely, where, TURNS, needs(*wanted), wanted)


def _nothing_needed(subject: Subject) -> None:
    likely = "It fails with no turn at all, so nothing is left."
    expect(subject, likely, "it always fails", TURNS, lambda script: True, [])


def _needless_later(subject: Subject) -> None:
    def fails(script: Sequence[str]) -> bool:
        return "c" in script and ("a" in script or "b" not in script)

    likely = "Once b is gone, a can go, too. Begin again after each turn that went, until a whole "
    likely += "round takes nothing away."
    where = "it fails with c, and while b is there, only with a"
    expect(subject, likely, where, ["a", "b", "c"], fails, ["c"])


def _clear_yes(subject: Subject) -> None:
    def fails(script: Sequence[str]) -> Any:
        return {"turn 1", "turn 2"} <= set(script) or ("turn 1" in script and "couldn't be judged")

    likely = "Only True is a failure. Whoever couldn't judge hasn't said yes."
    where = "it fails with turn 1 and turn 2, and can't be judged with turn 1 alone"
    expect(subject, likely, where, TURNS, fails, TURNS[:2])


def _doesnt_fail(subject: Subject) -> None:
    what = "shrink(script, fails), where it doesn't fail at all"
    try:
        got: Any = plain(what, subject.shrink, list(TURNS), lambda script: False)
    except (NotImplementedError, Wrong):
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it is looked at
        got = Raised(error)
    if not isinstance(got, Raised) or not isinstance(got.error, ValueError):
        likely = "What doesn't fail can't be made smaller: ask first, and raise ValueError."
        unknown = unknown_name(got.error) if isinstance(got, Raised) else ""
        told = raised(got.error) if isinstance(got, Raised) else shown(got)
        wrong(what, told, "ValueError is raised", unknown or likely)


def _halves_first(subject: Subject) -> None:
    script, asked = [f"turn {number}" for number in range(1, 257)], list[int]()

    def fails(some: Sequence[str]) -> bool:
        asked.append(len(some))
        return "turn 200" in some

    likely = "Take away large parts first, then ever smaller ones: each try is a whole run."
    where = "one turn of 256 makes it fail"
    expect(subject, likely, where, script, fails, ["turn 200"])
    if len(asked) > MOST:
        what = f"shrink(script, fails), where {where}"
        wrong(what, f"it was tried {len(asked)} times", f"at most {MOST} times", likely)


SHRUNK_CHECKS = (
    Check("v5-shrink", "What has no part in the failure goes.", _needless),
    Check("v5-shrink", "A failure that needs nothing leaves nothing.", _nothing_needed),
    Check("v5-shrink", "What becomes needless later goes, too.", _needless_later),
    Check("v5-shrink", "Only a clear yes is a failure.", _clear_yes),
    Check("v5-shrink", "What doesn't fail is refused.", _doesnt_fail),
    Check("v5-shrink", "Large parts go first.", _halves_first),
)
