"""The toggle, without a browser: what it shows, and what it hands out."""

from typing import Any

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

from mini_harness.clock import RealClock, VirtualClock
from mini_harness.models.anthropic import AnthropicModel
from mini_harness.models.mode import Mode
from mini_harness.models.scripted import ScriptedModel
from mini_harness.views import ModeToggle

KEY = "not-a-real-key"
REAL = Mode("real", "key and model are set", "claude-haiku-5-5", KEY)
OFFLINE = Mode("offline", "no key <here>")


def shown(toggle: ModeToggle, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    shell = InteractiveShell.instance()
    publisher = CapturingDisplayPublisher()
    monkeypatch.setattr(shell, "display_pub", publisher)
    toggle._ipython_display_()
    data: dict[str, Any] = publisher.outputs[0]["data"]
    return data


def test_it_shows_a_card_and_a_line_beside_the_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    """report N07"""
    data = shown(ModeToggle(OFFLINE), monkeypatch)
    assert data["text/plain"] == "Model: offline (no key <here>; API key: not set)"
    assert "no key &lt;here&gt;" in data["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_it_never_shows_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    toggle = ModeToggle(REAL)
    assert KEY not in f"{shown(toggle, monkeypatch)} {toggle!r} {toggle._says.value}"


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
    toggle._buttons.value = "real"
    assert toggle._buttons.value == "offline"
    assert "ANTHROPIC_API_KEY" in toggle._says.value
    assert toggle.mode.name == "offline"


def test_a_switch_takes_effect_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_VERSION")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("MODEL_ID", "claude-haiku-5-5")
    toggle = ModeToggle(OFFLINE)
    toggle._buttons.value = "real"
    assert isinstance(toggle.model([]), AnthropicModel)
    toggle._buttons.value = "offline"
    assert isinstance(toggle.model([]), ScriptedModel)


def test_under_pytest_real_stays_offline() -> None:
    toggle = ModeToggle(OFFLINE)
    toggle._buttons.value = "real"
    assert (toggle.mode.name, toggle._buttons.value) == ("offline", "offline")
