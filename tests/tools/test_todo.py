"""todo shows the list that a model gives it, and keeps nothing."""

from pathlib import Path
from typing import Any

import pytest

from mini_harness import Policy
from mini_harness.tools.todo import MAX_ITEMS, Todo, TodoInput
from tests.loops import call, play, tool_messages, turn
from tests.tools.workshop import use


def item(text: str, status: str = "pending") -> dict[str, Any]:
    return {"text": text, "status": status}


def asked(*items: Any, **parts: Any) -> str:
    run = play([turn(call("todo", items=list(items))), {"type": "final", "output": ""}], [Todo()])
    text: str = tool_messages(run.run)[0]["tool_result"]
    return text


def test_a_list_is_shown_line_by_line_with_a_count() -> None:
    text = asked(item("read", "completed"), item("fix\nit", "in_progress"), item("test"))
    assert text == "[x] read\n[>] fix it\n[ ] test\n1 of 3 completed."
    assert asked() == "(the list is empty)"


def test_each_call_replaces_the_whole_list(tmp_path: Path) -> None:
    tool = Todo()
    use(tool, tmp_path, items=[item("a"), item("b")])
    assert use(tool, tmp_path, items=[item("c")]).output == "[ ] c\n0 of 1 completed."
    assert list(tmp_path.iterdir()) == []


def test_at_most_one_item_is_in_progress() -> None:
    text = asked(item("a", "in_progress"), item("b", "in_progress"))
    assert text.startswith("Invalid arguments:\n- items: ")
    assert "2 items are in progress, but at most one can be" in text


@pytest.mark.parametrize(
    "wrong",
    [
        item(""),
        item("x" * 501),
        item("a", "done"),
        {"text": "a"},
        {**item("a"), "id": 1},
        "a",
    ],
    ids=["no text", "long", "no such status", "no status", "unknown key", "text"],
)
def test_an_item_that_is_none_is_refused(wrong: Any) -> None:
    """report T04"""
    assert asked(wrong).startswith("Invalid arguments:\n- items.0")


def test_the_list_is_bounded() -> None:
    assert asked(*[item("a")] * MAX_ITEMS).endswith("0 of 100 completed.")
    assert asked(*[item("a")] * (MAX_ITEMS + 1)).startswith("Invalid arguments:\n- items: ")


def test_it_only_reads_and_may_be_repeated() -> None:
    """B04, B19"""
    given = TodoInput(items=[])
    assert Todo().is_read_only(given)
    assert Todo().idempotent
    assert Todo().paths(given) == []
    turns = [turn(call("todo", items=[item("read .env and id_rsa")]))]
    run = play([*turns, {"type": "final", "output": ""}], [Todo()], layers=[Policy(mode="plan")])
    assert not tool_messages(run.run)[0]["is_error"]
