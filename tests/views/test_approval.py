"""The approval's widgets without a browser: what a static page shows, and that nothing hangs."""

from dataclasses import replace
from typing import Any

import pytest

from mini_harness import ApprovalRequest, Harness, Policy, Run, ScriptedModel, Status, tool
from mini_harness.frozen import parse_object
from mini_harness.redact import MASK
from mini_harness.views import ApprovalPanel, ask_here
from mini_harness.views.approval import ApprovalForm
from tests.displays import displayed


@tool(paths=())
def say(text: str, api_key: str = "") -> str:
    """Say."""
    return text


def paused(text: str, **more: str) -> tuple[Harness, Run]:
    call = {"type": "tool", "name": "say", "arguments": {"text": text, **more}}
    harness = Harness(ScriptedModel([call]), [say], layers=[Policy()])
    return harness, harness.run_sync("say it")


def test_a_static_page_shows_what_is_asked_and_nothing_in_it_is_markup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """report N07, P07"""
    data = displayed(ApprovalPanel(*paused("<img src=x onerror=alert(1)>\u202e")), monkeypatch)
    assert "&lt;img src=x onerror=alert(1)&gt;\\u202e" in data["text/html"]
    assert "<img" not in data["text/html"]
    assert "say waits for your answer" in data["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in data


def test_the_editable_arguments_are_json_in_which_nothing_hides() -> None:
    """report P07"""
    text = "a\u202eb\U000e0072\x1b\u3164ü"
    box = ApprovalPanel(*paused(text))._form.arguments.value
    assert all(c == "\n" or c.isprintable() for c in box)
    assert "\u3164" not in box
    assert parse_object(box) == {"text": text}


def test_a_secret_does_not_show_in_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """report P08"""
    panel = ApprovalPanel(*paused("hello", api_key="abcdef0123456789"))
    everything = f"{displayed(panel, monkeypatch)} {panel._form.arguments.value} {panel!r}"
    assert "abcdef0123456789" not in everything
    assert MASK in everything


def test_where_only_yes_or_no_counts_there_are_no_other_buttons() -> None:
    request = ApprovalRequest.of(paused("hello")[1])
    shown = []
    for yes_or_no in (False, True):
        form = ApprovalForm(lambda approval: None)
        form.ask(replace(request, yes_or_no=yes_or_no))
        shown.append([each.description for each in form.buttons if not each.layout.display])
    assert shown == [["Approve", "Approve edited", "Always", "Deny"], ["Approve", "Deny"]]
    assert form.arguments.layout.display == "none"
    assert "Always" not in form._says.value


def test_a_panel_of_a_run_that_is_over_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(ScriptedModel([{"type": "final", "output": "<done>"}]))
    data = displayed(ApprovalPanel(harness, harness.run_sync("go")), monkeypatch)
    assert "is completed: &lt;done&gt;" in data["text/html"]


async def _asked(request: ApprovalRequest) -> Any:
    return await ask_here(request)


def test_where_no_person_is_a_cell_that_asks_does_not_wait() -> None:
    """report N04: headless, nothing hangs and nothing is approved"""
    call = {"type": "tool", "name": "say", "arguments": {"text": "x"}}
    harness = Harness(ScriptedModel([call]), [say], layers=[Policy(approver=_asked)])
    assert harness.run_sync("say it").status is Status.PAUSED
