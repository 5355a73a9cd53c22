"""The toggle, without a browser: what it shows, and what it hands out."""

import pytest

from mini_harness.clock import RealClock, VirtualClock
from mini_harness.models.anthropic import AnthropicModel
from mini_harness.models.mode import Mode
from mini_harness.models.scripted import ScriptedModel
from mini_harness.views import ModeToggle
from tests.displays import displayed

KEY = "not-a-real-key"
REAL = Mode("real", "key and model are set", "claude-haiku-5-5", KEY)
OFFLINE = Mode("offline", "no key <here>")


def test_it_shows_a_card_and_a_line_beside_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """report N07"""
    data = displayed(ModeToggle(OFFLINE), monkeypatch)
    assert data["text/plain"] == "Model: offline (no key <here>; API key: not set)"
    assert "no key &lt;here&gt;" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_it_never_shows_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    toggle = ModeToggle(REAL)
    assert KEY not in f"{displayed(toggle, monkeypatch)} {toggle!r} {toggle._says.value}"


def test_it_hands_out_the_model_and_the_clock_of_the_mode() -> None:
    offline, real = ModeToggle(OFFLINE), ModeToggle(REAL)
    assert isinstance(offline.model([]), ScriptedModel)
    assert isinstance(offline.clock(), VirtualClock)
    assert isinstance(real.model([]), AnthropicModel)
    assert isinstance(real.clock(), RealClock)


def test_a_switch_that_cannot_be_made_says_why_and_springs_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    toggle = ModeToggle(OFFLINE)
    toggle._real.value = True
    assert toggle._real.value is False
    assert "ANTHROPIC_API_KEY" in toggle._says.value
    assert toggle.mode.name == "offline"


def test_a_switch_takes_effect_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("MODEL_ID", "claude-haiku-5-5")
    toggle = ModeToggle(OFFLINE)
    toggle._real.value = True
    assert isinstance(toggle.model([]), AnthropicModel)
    toggle._real.value = False
    assert isinstance(toggle.model([]), ScriptedModel)


def test_one_click_switches_once_however_often_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """report N02: two views, two clicks each way, and the first toggle of a cell that ran twice"""
    asked: list[str | None] = []

    def choose(name: str | None = None) -> Mode:
        asked.append(name)
        return REAL if name == "real" else OFFLINE

    monkeypatch.setattr("mini_harness.views.mode.choose_mode", choose)
    old, new = ModeToggle(OFFLINE), ModeToggle(OFFLINE)
    for _ in range(2):
        displayed(new, monkeypatch)
    for value in (True, True, False, False):
        new._real.value = value
    assert asked == ["real", "offline"]
    old._real.value = True
    assert (old.mode.name, new.mode.name) == ("real", "offline")


def test_under_pytest_real_stays_offline() -> None:
    toggle = ModeToggle(OFFLINE)
    toggle._real.value = True
    assert (toggle.mode.name, toggle._real.value) == ("offline", False)
