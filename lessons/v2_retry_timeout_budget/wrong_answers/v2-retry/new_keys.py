"""Each attempt has a key of its own."""

from mini_harness import TransientError


class OutcomeUnknown(Exception):
    pass


def retry(attempt, key, repeatable, sleep, attempts=3, base=1.0, cap=30.0):
    for number in range(1, attempts + 1):
        try:
            return attempt(f"{key}-{number}")
        except TransientError as error:
            if not repeatable:
                raise OutcomeUnknown(str(error)) from error
            if number == attempts:
                raise
            sleep(max(min(cap, base * 2 ** (number - 1)), error.retry_after or 0))
