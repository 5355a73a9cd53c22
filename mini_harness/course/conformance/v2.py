"""What trying again must do, whoever wrote it; what `spent` and `survived` add."""

from __future__ import annotations

from typing import Any

from mini_harness.course.conformance import Check, Subject, Wrong
from mini_harness.course.conformance.gated import Raised
from mini_harness.course.conformance.spent import AWAY, SPENT_CHECKS
from mini_harness.course.conformance.stage import (
    AskedTooOften,
    LogServerError,
    plain,
    raised,
    wrong,
)
from mini_harness.course.conformance.survived import SURVIVED_CHECKS, UNKNOWN
from mini_harness.course.trouble import unknown_name
from mini_harness.frozen import shown
from mini_harness.tools.base import TransientError


class Server:
    """Fails in the given ways, one each time it is asked, then answers. Keeps the keys it saw."""

    def __init__(self, *fails: BaseException) -> None:
        self.fails = list(fails)
        self.keys: list[Any] = []
        self.slept: list[float] = []

    def ask(self, key: Any) -> str:
        self.keys.append(key)
        if len(self.keys) <= len(self.fails):
            raise self.fails[len(self.keys) - 1]
        return "here it is"

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) > 20:
            raise AskedTooOften


def away(times: int = 1, **more: Any) -> list[BaseException]:
    return [TransientError(AWAY, **more) for _ in range(times)]


def retry(subject: Subject, server: Server, *, repeatable: bool = True, attempts: int = 3) -> Any:
    """What the subject's ``retry`` returns, or what it raised."""
    called = retries(server, repeatable, attempts)

    def run() -> Any:
        return plain(called, subject.retry, server.ask, "key-7", repeatable, server.sleep, attempts)

    try:
        return run()
    except (NotImplementedError, Wrong):
        raise
    except AskedTooOften:
        wrong(called, "it is tried again and again", "it ends", "Count the attempts, and stop.")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - it may be what is wanted
        if unknown := unknown_name(error):
            wrong(called, raised(error), "the result, or the call's own error", unknown)
        return Raised(error)


def retries(server: Server, repeatable: bool, attempts: int = 3) -> str:
    """How a check called ``retry``."""
    kinds = [type(each).__name__ for each in server.fails]
    fails = f"raises {', then '.join(kinds)}, then answers" if kinds else "answers"
    given = f"repeatable={repeatable}, attempts={attempts}"
    return f"retry(attempt, 'key-7', {given}), where the attempt {fails}"


def _first(subject: Subject) -> None:
    server = Server()
    got = retry(subject, server)
    if got != "here it is" or len(server.keys) != 1 or server.slept:
        told = f"{shown(got)} after {len(server.keys)} attempts and the waits {server.slept}"
        likely = "Return at once what the first attempt gives."
        wrong(retries(server, True), told, "'here it is' after 1 attempt, without a wait", likely)


def _passes(subject: Subject) -> None:
    server = Server(*away())
    got = retry(subject, server)
    if got != "here it is":
        likely = "A TransientError says that it may pass. Wait, and try again."
        wrong(retries(server, True), shown(got), "'here it is', at the second attempt", likely)


def _counted(subject: Subject) -> None:
    for attempts in (3, 1):
        server = Server(*away(9))
        got = retry(subject, server, attempts=attempts)
        if len(server.keys) != attempts:
            likely = "`attempts` counts all of them, the first one too."
            called = retries(server, True, attempts)
            wrong(called, f"{len(server.keys)} attempts", f"{attempts} in total", likely)
        if not isinstance(got, Raised) or got.error is not server.fails[attempts - 1]:
            likely = "When the attempts are used up, the last error is the answer: raise it."
            called = retries(server, True, attempts)
            wrong(called, shown(got), "the last TransientError is raised", likely)


def _permanent(subject: Subject) -> None:
    server = Server(LogServerError("there is no such build"))
    got = retry(subject, server)
    if len(server.keys) != 1:
        likely = "Every error is taken for one that passes. Only who raises it knows: it says so "
        likely += "with a TransientError."
        wrong(retries(server, True), f"{len(server.keys)} attempts", "1 attempt", likely)
    if not isinstance(got, Raised) or got.error is not server.fails[0]:
        likely = "An error that doesn't pass goes up as it is."
        wrong(retries(server, True), shown(got), "that very error is raised", likely)


def _unrepeatable(subject: Subject) -> None:
    server = Server(*away())
    got = retry(subject, server, repeatable=False)
    if len(server.keys) != 1:
        likely = "It is tried again, though it may have had its effect. Ask `repeatable` first."
        wrong(retries(server, False), f"{len(server.keys)} attempts", "1 attempt", likely)
    if not isinstance(got, Raised) or type(got.error).__name__ != UNKNOWN:
        likely = "Nobody knows whether it took effect, and that must be said."
        wrong(retries(server, False), shown(got), f"{UNKNOWN} is raised", likely)


def _one_key(subject: Subject) -> None:
    server = Server(*away(2))
    retry(subject, server)
    if set(server.keys) != {"key-7"}:
        likely = "Each attempt has a key of its own. Then the server takes them for different "
        likely += "calls, and does it twice."
        wrong(retries(server, True), f"the keys {server.keys}", "'key-7' each time", likely)


def _longer(subject: Subject) -> None:
    last = "There is no wait after the last attempt: nothing comes after it."
    server = Server(*away(3))
    retry(subject, server, attempts=4)
    if server.slept != [1.0, 2.0, 4.0]:
        likely = "Wait 1 second after the first attempt, and twice as long after each further one."
        likely = last if len(server.slept) > 3 else likely
        called = retries(server, True, 4)
        wrong(called, f"the waits {server.slept}", "[1.0, 2.0, 4.0]", likely)
    server = Server(*away(9))
    retry(subject, server)
    if len(server.slept) != 2:
        wrong(retries(server, True), f"the waits {server.slept}", "two waits", last)


def _asked_for(subject: Subject) -> None:
    for asked, waits in ((5, [5]), (0.25, [1.0])):
        server = Server(*away(1, retry_after=asked))
        retry(subject, server)
        if server.slept != waits:
            likely = "`error.retry_after` is what the server asks for, or None. Wait the longer "
            likely += "of that and your own."
            called = f"{retries(server, True)}, with retry_after={asked}"
            wrong(called, f"the waits {server.slept}", str(waits), likely)


CHECKS = (
    Check("v2-retry", "What works at once is tried once.", _first),
    Check("v2-retry", "What passes is tried again.", _passes),
    Check("v2-retry", "An error that doesn't pass goes up at once.", _permanent),
    Check("v2-retry", "What may not be repeated is tried once, and is unknown.", _unrepeatable),
    Check("v2-retry", "All attempts have the same key.", _one_key),
    Check("v2-retry", "There are as many attempts as were given, the first included.", _counted),
    Check("v2-retry", "Each wait is twice as long, and none comes last.", _longer),
    Check("v2-retry", "A longer wait that is asked for is obeyed.", _asked_for),
    *SPENT_CHECKS,
    *SURVIVED_CHECKS,
)
