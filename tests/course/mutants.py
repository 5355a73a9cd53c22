"""What the checks of a lesson say to a broken solution."""

from collections.abc import Callable, Mapping
from typing import Any

from mini_harness.course.conformance import Subject, Wrong, conformance


def faults(step: str, mutant: Subject, grades: Callable[[str], bool]) -> dict[str, Wrong]:
    """The findings, by the titles of the checks. ``grades`` says which exercises are looked at."""
    found = {}
    for check in conformance(step):
        if grades(check.exercise):
            try:
                check.run(mutant)
            except Wrong as wrong:
                found[check.title] = wrong
    return found


def faults_of(
    step: str, solutions: Mapping[str, str], name: str, old: str, new: str, *before: str
) -> dict[str, Wrong]:
    """What the checks say of the exercise in whose solution ``old`` became ``new``. What stands
    ``before`` it is as it should be."""
    assert old in solutions[name]
    mutant = subject(*before, solutions[name].replace(old, new))
    return faults(step, mutant, lambda graded: graded == f"{step}-{name}")


def subject(*sources: str) -> Subject:
    """A learner's whole harness. Every source is like a module of its own: the last name wins."""
    namespace: dict[str, Any] = {}
    for source in sources:
        own = [line for line in source.split("\n") if not line.startswith("from my_harness ")]
        exec("\n".join(own), namespace)
    find: Callable[[str], Any] = namespace.__getitem__
    return Subject("a mutant", find)
