"""What a notebook shows: the only rooms that know widgets and plots."""

from mini_harness.views.approval import ApprovalPanel, ask_here
from mini_harness.views.explorer import TraceExplorer
from mini_harness.views.mode import ModeToggle
from mini_harness.views.question import answer_here

__all__ = ["ApprovalPanel", "ModeToggle", "TraceExplorer", "answer_here", "ask_here"]
