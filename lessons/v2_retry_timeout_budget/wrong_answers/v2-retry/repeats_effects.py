"""It is tried again, though it may have had its effect."""

from mini_harness import TransientError


class OutcomeUnknown(Exception):
    pass


def retry(attempt, key, repeatable, sleep, attempts=3, base=1.0, cap=30.0):
    for number in range(1, attempts + 1):
        try:
            return attempt(key)
        except TransientError as error:
            if number == attempts:
                if repeatable:
                    raise
                raise OutcomeUnknown(str(error)) from error
            sleep(max(min(cap, base * 2 ** (number - 1)), error.retry_after or 0))
