"""The list of what is to be done. It keeps a model on its way, and a person informed."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field, field_validator

from mini_harness.tools.base import BaseTool, ToolExecutionContext, ToolResult

MAX_ITEMS = 100
"""How many items a list may have."""

MAX_TEXT = 500
"""How many characters an item may have."""

_MARKS = {"pending": " ", "in_progress": ">", "completed": "x"}


class TodoItem(BaseModel):
    text: str = Field(min_length=1, max_length=MAX_TEXT, description="What is to be done.")
    status: Literal["pending", "in_progress", "completed"] = Field(description="How it stands.")


class TodoInput(BaseModel):
    items: list[TodoItem] = Field(
        max_length=MAX_ITEMS,
        description="The whole list, in order; it replaces the last one. "
        "At most one item is in progress.",
    )

    @field_validator("items")
    @classmethod
    def _one_at_a_time(cls, items: list[TodoItem]) -> list[TodoItem]:
        busy = sum(item.status == "in_progress" for item in items)
        if busy > 1:
            raise ValueError(f"{busy} items are in progress, but at most one can be")
        return items


class Todo(BaseTool):
    """Replace the list of what is to be done, and show it.

    It changes nothing outside the conversation and keeps nothing: the record has the list.
    """

    name = "todo"
    description = (
        "Keep a list of what is to be done. Each call gives the whole list anew. Use it for work "
        "of several steps, and call it again when an item is begun or completed."
    )
    input_model = TodoInput
    idempotent = True

    def is_read_only(self, arguments: TodoInput) -> bool:
        return True

    def paths(self, arguments: TodoInput) -> list[str]:
        return []

    async def execute(self, arguments: TodoInput, context: ToolExecutionContext) -> ToolResult:
        """One line an item, ``[x] text`` if it is completed, and last how many are."""
        items = arguments.items
        if not items:
            return ToolResult("(the list is empty)")
        lines = [f"[{_MARKS[item.status]}] {' '.join(item.text.split())}" for item in items]
        done = sum(item.status == "completed" for item in items)
        return ToolResult("\n".join([*lines, f"{done} of {len(items)} completed."]))
