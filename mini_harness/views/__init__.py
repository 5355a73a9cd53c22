"""What a notebook shows: the only rooms that know widgets and plots."""

from mini_harness.views.approval import ApprovalPanel, ask_here
from mini_harness.views.explorer import TraceExplorer
from mini_harness.views.mode import ModeToggle

__all__ = ["ApprovalPanel", "ModeToggle", "TraceExplorer", "ask_here"]
