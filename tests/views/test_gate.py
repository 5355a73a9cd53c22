"""The gate's card and plot, without a browser: what they hold, and what they say in words."""

import re
import subprocess
import sys
from base64 import b64decode
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.axes import Axes
from PIL import Image

from mini_harness.gate import Gate, GateResult
from mini_harness.gate_report import MOST
from mini_harness.gate_rules import Flaky, Forbidden, PassRate
from mini_harness.results import FailureKind, Report
from mini_harness.views.gate import GateCard, GatePlot
from tests.gates import of, one, report

NASTY = "\x1b[2K\u202e\"'><script>alert(1)</script>"


def judged(found: Report, *rules: Any) -> GateResult:
    return Gate(rules or [PassRate(Decimal("0.9"))]).judge(found)


def kinds(repeats: int = 1) -> Report:
    return of(
        *(
            one(outcome, f"{kind}-{number}", kind=kind, repeat=repeat)
            for kind, outcomes in (
                (FailureKind.TIME_OUT, "PPF"),
                (FailureKind.NONE, "PP"),
                (FailureKind.ENDLESS, "PE"),
            )
            for number, outcome in enumerate(outcomes)
            for repeat in range(repeats)
        ),
        repeats=repeats,
    )


def axes_of(plot: GatePlot) -> Axes:
    return plot.figure.axes[0]


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.seen.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def tags(page: str) -> Tags:
    found = Tags()
    found.feed(page)
    return found


def test_the_card_has_the_verdict_and_a_row_for_each_rule() -> None:
    card = GateCard(judged(report(*"PPF"), PassRate(Decimal("0.67")), Flaky(1)))
    shown = tags(card._repr_html_())
    words = " ".join(shown.text)
    assert "Quality gate: ✗ FAIL" in words
    assert shown.seen.count("tr") == 4
    assert "Passed: 2/3=0.6667, at least 0.67 is asked." in words
    assert "This rule cannot fail." in words
    assert "case-2: failed" in words
    assert repr(card).splitlines()[-1] == card.result.summary


def test_a_notebook_stores_text_and_html_and_no_widget() -> None:
    card = GateCard(judged(kinds()))
    formatter: Any = DisplayFormatter()
    for shown in (card, card.plot):
        data, _ = formatter.format(shown)
        assert set(data) == {"text/plain", "text/html"}


def test_words_of_others_are_only_words() -> None:
    found = Report.of([one("F", NASTY, reasons=(NASTY,))], [NASTY], NASTY)
    card = GateCard(judged(found, PassRate(1), Forbidden((NASTY,))))
    for page in (card._repr_html_(), card.plot._repr_html_()):
        assert "script" not in tags(page).seen
        assert "\x1b" not in page and "\u202e" not in page
    assert r"\x1b[2K\u202e" in "".join(tags(card._repr_html_()).text)


def test_a_card_of_thousands_of_failures_stays_small() -> None:
    found = of(*(one("F", f"c{number:04}") for number in range(2_000)))
    page = GateCard(judged(found))._repr_html_()
    assert page.count("<li>") == MOST + 1
    assert f"... and {2_000 - MOST:,} more" in page


def test_the_plot_has_a_row_for_all_and_for_each_kind_that_occurs() -> None:
    plot = GatePlot(judged(kinds()))
    labels = ["all cases", "no failure", "endless", "time out"]
    assert [label.get_text() for label in axes_of(plot).get_yticklabels()] == labels
    assert [row.label for row in plot.rows] == labels
    dots = [line.get_xdata()[0] for line in axes_of(plot).lines if line.get_marker() == "o"]  # type: ignore[index]
    assert dots == pytest.approx([5 / 7, 1, 1 / 2, 2 / 3])
    assert plot.summary == (
        "Pass rate by kind: all cases 5/7=0.7143, no failure 2/2=1.0000, endless 1/2=0.5000, "
        "time out 2/3=0.6667. At least 0.9 is asked."
    )


def test_the_threshold_and_what_was_not_judged_are_drawn() -> None:
    axes = axes_of(GatePlot(judged(kinds())))
    texts = [text.get_text() for text in axes.texts]
    assert "at least 90 %" in texts
    assert {"5/7", "2/2", "1/2", "2/3"} <= set(texts)
    bars = [(bar.get_x(), bar.get_width()) for bar in axes.patches]  # type: ignore[attr-defined]
    assert bars == [pytest.approx((5 / 7, 1 / 7)), pytest.approx((1 / 2, 1 / 2))]
    assert "grey: not judged" in axes.get_xlabel()
    third = axes_of(GatePlot(judged(kinds(), PassRate(Fraction(1, 3)))))
    assert "at least 1/3" in [text.get_text() for text in third.texts]


def test_an_interval_is_drawn_only_where_cases_were_repeated() -> None:
    once, often = GatePlot(judged(kinds())), GatePlot(judged(kinds(repeats=10)))
    assert len(axes_of(once).collections) == 0
    assert "interval" not in axes_of(once).get_xlabel()
    assert "each case ran once" in once.table()
    assert len(axes_of(often).collections) == len(often.rows)
    low, high = often.rows[3].interval or (0, 0)
    assert (round(low, 4), round(high, 4)) == (0.4878, 0.8077)
    assert "0.4878 to 0.8077" in often.table()
    assert "95 % interval by Wilson" in axes_of(often).get_xlabel()


def test_the_table_has_the_facts_of_the_plot() -> None:
    page = tags(GatePlot(judged(kinds())).table())
    cells = [each for each in page.text if each.strip()]
    assert cells[5:9] == ["all cases", "5/7=0.7143", "1", "each case ran once"]
    assert page.seen.count("tr") == 5
    assert page.seen.count("caption") == 1


def test_a_picture_has_words_and_is_the_same_every_time() -> None:
    """nbval compares it; axe asks for the alternative text"""
    shown = GatePlot(judged(kinds()))._repr_html_()
    assert 'alt="Pass rate by kind of failure, described in the table below"' in shown
    assert "<figcaption>Pass rate by kind: all cases 5/7=0.7143" in shown
    (source,) = re.findall('src="data:image/svg[+]xml;base64,([^"]+)"', shown)
    assert ElementTree.fromstring(b64decode(source)).tag.endswith("svg")
    assert shown == GatePlot(judged(kinds()))._repr_html_()
    assert len(shown) < 160_000


def test_no_writing_is_smaller_than_nine_points() -> None:
    axes = axes_of(GatePlot(judged(kinds(2))))
    texts = [*axes.texts, *axes.get_yticklabels(), *axes.get_xticklabels(), axes.xaxis.label]
    assert min(float(text.get_fontsize()) for text in texts) >= 9


@pytest.mark.parametrize("found", [report(), report(*"SS"), report(*"--")])
def test_where_nothing_ran_there_is_a_card_and_a_plot_all_the_same(found: Report) -> None:
    """report G01"""
    card = GateCard(judged(found))
    assert "INCONCLUSIVE" in card._repr_html_()
    assert "no case ran" in repr(card)
    assert card.plot.png.startswith(b"\x89PNG")
    if not found.selected:
        assert card.plot.summary.startswith("Pass rate by kind: no case ran.")
        assert [text.get_text() for text in axes_of(card.plot).texts] == ["No case ran."]


def test_it_is_saved_with_its_words_as_png_and_svg(tmp_path: Path) -> None:
    plot = GatePlot(judged(kinds()))
    for name in ("a.png", "a.svg"):
        plot.save(tmp_path / name)
    with Image.open(BytesIO((tmp_path / "a.png").read_bytes())) as image:
        assert image.info["Description"] == plot.summary
        assert (image.width, image.height) == (900, 294)
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert plot.summary in " ".join(ElementTree.fromstring(svg).itertext())
    assert "date>" not in svg
    with pytest.raises(ValueError, match=r"\.png or \.svg, not 'a.pdf'"):
        plot.save(tmp_path / "a.pdf")


def test_pyplot_is_never_loaded() -> None:
    """It keeps one current figure for all threads."""
    script = "import sys; import mini_harness.views.gate; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, encoding="utf-8"
    )
    assert "matplotlib.pyplot" not in done.stdout.split()
