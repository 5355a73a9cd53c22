"""What the checks of a lesson say to a broken solution."""

from collections.abc import Callable

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
