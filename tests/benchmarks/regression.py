"""How long a corpus of 1,000 cases takes on one core: the corpus that ships, again and again."""

from __future__ import annotations

import time

from mini_harness.corpus import Corpus
from mini_harness.gate_command import SHIPPED
from mini_harness.regression import run_corpus

CASES = 1_000
# Seconds of CPU: what is aimed at, and what makes the script fail.
SECONDS = 5.0, 10.0

Bounds = tuple[float, float]


def measure() -> list[tuple[str, float, Bounds]]:
    corpus = Corpus.load(SHIPPED)
    repeats = -(-CASES // len(corpus))
    run_corpus(corpus)  # What is loaded and made once isn't a case's.
    begun = time.process_time()
    report = run_corpus(corpus, repeats=repeats)
    took = (time.process_time() - begun) * CASES / len(report.results)
    if {each.outcome.value for each in report.results} != {"passed"}:
        raise AssertionError("Not all of the shipped cases pass.")
    return [("v5: seconds of CPU for 1,000 cases", took, SECONDS)]
