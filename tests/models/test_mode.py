"""Which model a person gets, and that nobody reaches the network by surprise."""

import os
from pathlib import Path

import pytest

from mini_harness.models.mode import Mode, ModeError, choose_mode, settings

KEY = "not-a-real-key"
BOTH = {"ANTHROPIC_API_KEY": KEY, "MODEL_ID": "claude-haiku-5-5"}


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ({}, "offline"),
        ({"ANTHROPIC_API_KEY": "", "MODEL_ID": "m"}, "offline"),
        ({"ANTHROPIC_API_KEY": " \t", "MODEL_ID": "m"}, "offline"),
        ({"ANTHROPIC_API_KEY": KEY}, "offline"),
        ({"ANTHROPIC_API_KEY": KEY, "MODEL_ID": " "}, "offline"),
        (BOTH, "real"),
        (BOTH | {"MINI_HARNESS_MODE": "offline"}, "offline"),
        (BOTH | {"MINI_HARNESS_MODE": " REAL "}, "real"),
        (BOTH | {"MINI_HARNESS_MODE": ""}, "real"),
        (BOTH | {"PYTEST_VERSION": "9"}, "offline"),
        (BOTH | {"PYTEST_VERSION": "9", "MINI_HARNESS_MODE": "real"}, "offline"),
    ],
)
def test_auto_is_real_only_with_a_key_and_a_model(environment: dict[str, str], name: str) -> None:
    """C60"""
    assert choose_mode(environment=environment).name == name


def test_what_is_asked_for_wins_over_the_setting() -> None:
    assert choose_mode("offline", BOTH | {"MINI_HARNESS_MODE": "real"}).name == "offline"


@pytest.mark.parametrize("missing", ["ANTHROPIC_API_KEY", "MODEL_ID"])
def test_real_without_a_key_or_a_model_says_what_is_missing(missing: str) -> None:
    """C60: never a KeyError"""
    environment = {k: v for k, v in BOTH.items() if k != missing}
    with pytest.raises(ModeError, match=f"{missing} is not set"):
        choose_mode("real", environment)


def test_an_unknown_mode_lists_the_known_ones() -> None:
    with pytest.raises(ModeError, match="auto, offline, real"):
        choose_mode("reel", {})


def test_the_key_is_never_shown() -> None:
    mode = choose_mode(environment=BOTH)
    assert mode.api_key == KEY
    assert KEY not in f"{mode} {mode!r} {[mode]}"
    assert "set" in str(mode)
    assert "not set" in str(Mode("offline", "why"))


def test_the_env_file_is_found_above_and_the_environment_overrules_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("MODEL_ID=from-file\nANTHROPIC_API_KEY=é\n", encoding="utf-8")
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    monkeypatch.setenv("MODEL_ID", "  ")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    assert (settings()["MODEL_ID"], settings()["ANTHROPIC_API_KEY"]) == ("from-file", "é")
    monkeypatch.setenv("MODEL_ID", "from-outside")
    assert settings()["MODEL_ID"] == "from-outside"
    assert "ANTHROPIC_API_KEY" not in os.environ, "reading the file must not change the process"


def test_the_example_file_as_it_is_means_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = Path(__file__).parents[2] / ".env.example"
    (tmp_path / ".env").write_bytes(example.read_bytes())
    monkeypatch.chdir(tmp_path)
    for name in ("ANTHROPIC_API_KEY", "MODEL_ID", "MINI_HARNESS_MODE"):
        monkeypatch.delenv(name, raising=False)
    known = {k: v for k, v in settings().items() if k != "PYTEST_VERSION"}
    assert choose_mode(environment=known).why == "ANTHROPIC_API_KEY is not set"
