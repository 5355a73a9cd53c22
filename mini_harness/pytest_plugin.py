"""``pytest`` runs the cases of a corpus: every file ``*.case.json`` that it comes across is a test.

It is there as soon as the package is installed. A case that couldn't be judged is an error of the
test, and no failure of the harness; the report says which of the two it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from mini_harness.corpus import Case

# Written out, since nothing of the package is to be loaded where there are no cases.
_SUFFIX = ".case.json"


class CaseFailed(Exception):
    """The harness under test didn't do what the case expects."""


class CaseNotJudged(Exception):
    """The case, its tools or its harness are at fault, so it says nothing."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mini_harness")
    group.addoption(
        "--case-harness",
        metavar="MODULE:FUNCTION",
        help="run every *.case.json with this harness instead of the one that it names",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if not file_path.name.endswith(_SUFFIX):
        return None
    return CaseFile.from_parent(parent, path=file_path)


class CaseFile(pytest.File):
    """One file, which is one case."""

    def collect(self) -> Iterator[pytest.Item]:
        from mini_harness.corpus import BadCase, Case

        try:
            case = Case.load(self.path)
        except BadCase as error:
            raise self.CollectError(str(error)) from None
        yield CaseItem.from_parent(self, name=case.id, case=case)


class CaseItem(pytest.Item):
    """One case as a test. Its tags are marks of no meaning, but for choosing: ``-k``."""

    def __init__(self, *, case: Case, **more: Any) -> None:
        super().__init__(**more)
        self.case = case
        self.extra_keyword_matches |= {case.kind.value, *case.tags}

    def runtest(self) -> None:
        from mini_harness.regression import run_case
        from mini_harness.results import CaseOutcome

        result = run_case(self.case, harness=self.config.getoption("--case-harness"))
        self.user_properties += [("kind", result.kind.value), ("steps", result.steps)]
        if result.outcome is CaseOutcome.FAILED:
            raise CaseFailed("\n".join(result.reasons))
        if result.outcome is not CaseOutcome.PASSED:
            raise CaseNotJudged("\n".join(result.reasons))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What doesn't hold, without a traceback through this package: it would tell nothing."""
        if not isinstance(excinfo.value, CaseFailed | CaseNotJudged):
            return super().repr_failure(excinfo, style)
        what = "failed" if isinstance(excinfo.value, CaseFailed) else "could not be judged"
        return f"{self.case.title or self.case.goal}\nCase {self.case.id} {what}:\n{excinfo.value}"

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, f"case: {self.name}"
