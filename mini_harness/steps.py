"""The steps of the ladder: what each one adds to the package, and nothing that it changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

_V0: dict[str, tuple[str, ...]] = {
    "mini_harness.frozen": ("NotJson",),
    "mini_harness.visible": (),
    "mini_harness.redact": ("hide",),
    "mini_harness.protocol": (
        "Decision",
        "Final",
        "Observation",
        "Outcome",
        "ToolCall",
        "Turn",
        "UnknownDecision",
        "UnknownTool",
        "Usage",
    ),
    "mini_harness.history": ("History", "HistoryError"),
    "mini_harness.events": ("Event", "EventType", "Sink"),
    "mini_harness.clock": ("Clock", "RealClock", "VirtualClock"),
    "mini_harness.tools.base": (
        "BaseTool",
        "Tool",
        "ToolExecutionContext",
        "ToolResult",
        "TransientError",
    ),
    "mini_harness.tools.function": ("FunctionTool", "tool"),
    "mini_harness.tools.registry": ("ToolRegistry",),
    "mini_harness.tools.call": ("Call", "InvalidArguments"),
    "mini_harness.run": (
        "NotWaiting",
        "Run",
        "RunIsBusy",
        "RunNotCompleted",
        "Status",
        "StopReason",
    ),
    "mini_harness.layer": ("Failed", "Feedback", "Interrupt", "Layer", "Pause", "Stop", "View"),
    "mini_harness.record": ("Record",),
    "mini_harness.models.base": ("Model", "ModelError"),
    "mini_harness.models.scripted": ("DemoModel", "ScriptEnded", "ScriptedModel"),
    "mini_harness.sync": ("run_sync",),
    "mini_harness.loop": ("Harness",),
}

_V1: dict[str, tuple[str, ...]] = {
    "mini_harness.sensitive": (),
    "mini_harness.shell_words": (),
    "mini_harness.shell_syntax": (),
    "mini_harness.command_line": (),
    "mini_harness.rules": ("Judgement", "Rule", "Verdict"),
    "mini_harness.approval": (
        "Approval",
        "ApprovalRequest",
        "Approver",
        "ToolDenied",
        "approve_all",
        "deny_all",
    ),
    "mini_harness.speakers": ("PermissionMode",),
    "mini_harness.policy": ("Policy",),
    "mini_harness.limits": ("FailFast", "MaxSteps", "MaxStepsExceeded"),
    "mini_harness.spans": (),
    "mini_harness.table": (),
    "mini_harness.export": ("DamagedTrace",),
    "mini_harness.otel": (),
    "mini_harness.trace": ("Trace",),
}

_V2: dict[str, tuple[str, ...]] = {
    "mini_harness.retry": ("LimitsTime", "Retry"),
    "mini_harness.timeout": ("ModelTimedOut", "Timeout", "ToolAbandoned", "ToolTimedOut"),
    "mini_harness.budget": ("Budget", "BudgetExceeded"),
    "mini_harness.repeated": ("NoProgress", "RepeatedCalls"),
}

_V3: dict[str, tuple[str, ...]] = {
    "mini_harness.transcript": ("DamagedSession", "SessionIsBusy"),
    "mini_harness.checkpoint": (),
    "mini_harness.session_files": ("SessionInfo",),
    "mini_harness.session": ("Session",),
    "mini_harness.doubt": ("AskInDoubt",),
    "mini_harness.compaction": ("Compaction", "DropOldOutputs", "Summary"),
}

_V4: dict[str, tuple[str, ...]] = {
    "mini_harness.attribution": ("attributable",),
    "mini_harness.receipts": (),
    "mini_harness.claims": ("Claim", "Evidence", "Finding", "Standing"),
    "mini_harness.tools.process": (),
    "mini_harness.checks": ("Check", "CheckResult", "CheckVerdict", "ExitCheck"),
    "mini_harness.judge": ("Judge", "Opinion", "Tally"),
    "mini_harness.evidence": ("Verify", "standing_of"),
    "mini_harness.audit_entry": ("AuditDamaged", "Entry"),
    "mini_harness.audit_file": ("AuditIsBusy",),
    "mini_harness.audit_texts": (),
    "mini_harness.audit": ("AuditCheck", "AuditLog"),
    "mini_harness.audit_sink": ("Audit",),
    "mini_harness.envelope": (
        "Envelope",
        "EnvelopeStatus",
        "Role",
        "envelope_template",
        "fill_in",
        "hand_off",
        "read_envelope",
        "task_id_of",
    ),
}

_V5: dict[str, tuple[str, ...]] = {
    "mini_harness.faults": ("Fault", "FaultKind", "Faults", "ProcessCut"),
    "mini_harness.scrub": (),
    "mini_harness.volatile": ("VOLATILE", "Volatile"),
    "mini_harness.replies": ("RecordedError",),
    "mini_harness.cassette": ("Cassette", "DamagedCassette", "Exchange"),
    "mini_harness.replay": ("Recorder", "ReplayMiss", "ReplayModel", "UnusedRecordings"),
    "mini_harness.minimal": ("Minimal", "minimise"),
    "mini_harness.results": ("CaseOutcome", "CaseResult", "FailureKind", "Report"),
    "mini_harness.expectation": ("Expectation",),
    "mini_harness.corpus": ("BadCase", "Case", "Corpus", "DuplicateCase"),
    "mini_harness.regression": ("World", "run_case", "run_corpus"),
    "mini_harness.advice": ("FailureClass", "Receipt", "advise"),
}

_V6: dict[str, tuple[str, ...]] = {
    "mini_harness.gate_figures": (),
    "mini_harness.gate": ("Gate", "GateFinding", "GateResult", "GateRule", "GateVerdict"),
    "mini_harness.gate_rules": (
        "Cost",
        "Coverage",
        "Flaky",
        "Forbidden",
        "PassRate",
        "Steps",
        "VerifiedShare",
    ),
    "mini_harness.gate_baseline": ("CostRise", "NoRegression"),
    "mini_harness.gate_report": (),
    "mini_harness.gate_file": ("BadGate", "load_gate"),
}

_V0B: dict[str, tuple[str, ...]] = {
    "mini_harness.tools.places": (),
    "mini_harness.tools.diff": (),
    "mini_harness.tools.files": ("ReadFile",),
    "mini_harness.tools.write": ("WriteFile",),
    "mini_harness.tools.edit": ("EditFile",),
    "mini_harness.tools.listing": ("Glob", "ListFiles"),
    "mini_harness.tools.grep_child": (),
    "mini_harness.tools.grep": ("Grep",),
    "mini_harness.tools.interactive": (),
    "mini_harness.tools.shell": ("Bash",),
    "mini_harness.tools.search": ("ToolSearch",),
    "mini_harness.tools.ask": ("AskUser",),
    "mini_harness.tools.todo": ("Todo",),
    "mini_harness.tools.default": ("create_default_tool_registry",),
    "mini_harness.tools.mcp.errors": ("McpError", "McpRequestFailed", "McpServerFailed"),
    "mini_harness.tools.mcp.names": (),
    "mini_harness.tools.mcp.schema": (),
    "mini_harness.tools.mcp.closed": (),
    "mini_harness.tools.mcp.arguments": (),
    "mini_harness.tools.mcp.content": (),
    "mini_harness.tools.mcp.listing": (),
    "mini_harness.tools.mcp.process": (),
    "mini_harness.tools.mcp.questions": (),
    "mini_harness.tools.mcp.session": (),
    "mini_harness.tools.mcp.tool": ("McpTool",),
    "mini_harness.tools.mcp.server": ("McpServer",),
    "mini_harness.hook_commands": (),
    "mini_harness.hook": ("Block", "Hook", "HookEvent", "HookInput"),
    "mini_harness.hooks": ("Hooks", "PromptBlocked"),
    "mini_harness.parallel": ("ParallelReads",),
    "mini_harness.outputs": ("LargeOutput", "LongError"),
    "mini_harness.deferred": ("DeferredTools",),
}


@dataclass(frozen=True)
class Step:
    """One step: its modules with the public names each of them adds.

    ``layers`` and ``sinks`` name what the step's lesson puts around the loop, outermost first.
    """

    name: str
    title: str
    adds: Mapping[str, tuple[str, ...]]
    layers: tuple[str, ...] = ()
    sinks: tuple[str, ...] = ()

    @property
    def modules(self) -> tuple[str, ...]:
        return tuple(self.adds)

    @property
    def public_names(self) -> tuple[str, ...]:
        return tuple(name for names in self.adds.values() for name in names)


LADDER: Mapping[str, str] = MappingProxyType(
    {
        "v0": "Loop and tool",
        "v1": "Policy, trace, step limit",
        "v2": "Retry, time-out, budget",
        "v3": "Session, checkpoint, resume",
        "v4": "Evidence and verification",
        "v5": "Failure corpus and regression",
        "v6": "Quality gate",
    }
)
"""The titles of all steps, also of those that are still to come (SEEDS A28)."""

STEPS: Mapping[str, Step] = MappingProxyType(
    {
        "v0": Step("v0", LADDER["v0"], MappingProxyType(_V0)),
        "v1": Step("v1", LADDER["v1"], MappingProxyType(_V1), ("MaxSteps", "Policy"), ("Trace",)),
        "v2": Step(
            "v2",
            LADDER["v2"],
            MappingProxyType(_V2),
            ("Retry", "Budget", "Timeout", "RepeatedCalls"),
        ),
        "v3": Step(
            "v3", LADDER["v3"], MappingProxyType(_V3), ("Compaction", "AskInDoubt"), ("Session",)
        ),
        "v4": Step("v4", LADDER["v4"], MappingProxyType(_V4), ("Verify",), ("Audit",)),
        "v5": Step("v5", LADDER["v5"], MappingProxyType(_V5), ("Faults",)),
        "v6": Step("v6", LADDER["v6"], MappingProxyType(_V6)),
    }
)
"""The steps that exist, in their order."""

ROOMS: Mapping[str, Step] = MappingProxyType(
    {
        "v0b": Step(
            "v0b",
            "The tool system",
            MappingProxyType(_V0B),
            ("ParallelReads", "Hooks", "Policy", "LargeOutput", "DeferredTools"),
        ),
    }
)
"""Steps beside the ladder. They lean on it, and it never leans on them."""

COURSE: Mapping[str, str] = MappingProxyType(
    {"v0": LADDER["v0"], "v0b": ROOMS["v0b"].title, **LADDER}
)
"""The titles of all lessons, in the order in which one takes them."""

BESIDE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "mini_harness.models.anthropic": ("AnthropicModel",),
        "mini_harness.models.mode": ("Mode", "choose_mode"),
        "mini_harness.tools.builds": (),
    }
)
"""What belongs to no step: vendor adapters, and the story's tools."""

MODULES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        **{m: names for each in STEPS.values() for m, names in each.adds.items()},
        **{m: names for each in ROOMS.values() for m, names in each.adds.items()},
        **BESIDE,
    }
)
"""Every module with public names, or of a step, and the names."""


def step(name: str) -> Step:
    """The step of this name. Raises ValueError that lists the steps there are."""
    known = {**STEPS, **ROOMS}
    if name not in known:
        raise ValueError(f"There is no step {name!r}. The steps are: {', '.join(known)}.")
    return known[name]
