"""Every error is taken for one that passes."""


class OutcomeUnknown(Exception):
    pass


def retry(attempt, key, repeatable, sleep, attempts=3, base=1.0, cap=30.0):
    for number in range(1, attempts + 1):
        try:
            return attempt(key)
        except Exception as error:
            if not repeatable:
                raise OutcomeUnknown(str(error)) from error
            if number == attempts:
                raise
            asked = getattr(error, "retry_after", None) or 0
            sleep(max(min(cap, base * 2 ** (number - 1)), asked))
