"""The story's tools: a build farm that an agent can look at, and two calls that change it.

They work in the folder that the harness gives them: logs lie in ``logs/``, and what was rerun or
deployed is appended to ``reruns.log`` and ``deployments.log``. None of them takes a path from the
model, and each says so: ``paths=()``.
"""

from __future__ import annotations

from pathlib import Path

from mini_harness.tools.base import ToolExecutionContext, ToolResult
from mini_harness.tools.function import tool

BUILDS = {"build-101": "passed", "build-102": "failed"}


@tool(read_only=True, idempotent=True, paths=())
def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@tool(read_only=True, idempotent=True, paths=())
def read_build(build_id: str) -> str:
    """Read build status."""
    return BUILDS.get(build_id, "not found")


@tool(read_only=True, idempotent=True, paths=())
def read_log(build_id: str, context: ToolExecutionContext) -> ToolResult:
    """Read the log of a build."""
    # Only the id of a known build becomes part of a path.
    path = context.cwd / "logs" / f"{build_id}.log"
    if build_id not in BUILDS or not path.is_file():
        return ToolResult(f"There is no log of {build_id}.", is_error=True)
    return ToolResult(path.read_text(encoding="utf-8"))


@tool(paths=())
def rerun_build(build_id: str, context: ToolExecutionContext) -> ToolResult:
    """Queue a build again. This occupies the farm for minutes."""
    return _append(context.cwd / "reruns.log", build_id, "is queued again")


@tool(paths=())
def deploy_prod(build_id: str, context: ToolExecutionContext) -> ToolResult:
    """Deploy a build to production. Customers see it at once."""
    return _append(context.cwd / "deployments.log", build_id, "is live")


def _append(path: Path, build_id: str, effect: str) -> ToolResult:
    if build_id not in BUILDS:
        return ToolResult(f"There is no build {build_id}.", is_error=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{build_id}\n")
    return ToolResult(f"{build_id} {effect}.")


TOOLS = {t.name: t for t in (add, read_build, read_log, rerun_build, deploy_prod)}
"""All of them, by name (SEEDS A03)."""
