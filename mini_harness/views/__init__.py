"""What a notebook shows: the only rooms that know widgets and plots."""

from mini_harness.views.mode import ModeToggle

__all__ = ["ModeToggle"]
