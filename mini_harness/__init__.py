"""A small agent harness, built step by step in notebooks.

The model proposes, the harness decides what actually happens, the record remembers.

The public names are imported when they are first used: ``import mini_harness`` loads neither
pydantic nor a vendor SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mini_harness.steps import MODULES, STEPS, step

if TYPE_CHECKING:
    from mini_harness.advice import FailureClass as FailureClass
    from mini_harness.advice import Receipt as Receipt
    from mini_harness.advice import advise as advise
    from mini_harness.approval import Approval as Approval
    from mini_harness.approval import ApprovalRequest as ApprovalRequest
    from mini_harness.approval import Approver as Approver
    from mini_harness.approval import ToolDenied as ToolDenied
    from mini_harness.approval import approve_all as approve_all
    from mini_harness.approval import deny_all as deny_all
    from mini_harness.attribution import attributable as attributable
    from mini_harness.audit import AuditCheck as AuditCheck
    from mini_harness.audit import AuditLog as AuditLog
    from mini_harness.audit_entry import AuditDamaged as AuditDamaged
    from mini_harness.audit_entry import Entry as Entry
    from mini_harness.audit_file import AuditIsBusy as AuditIsBusy
    from mini_harness.audit_sink import Audit as Audit
    from mini_harness.budget import Budget as Budget
    from mini_harness.budget import BudgetExceeded as BudgetExceeded
    from mini_harness.cassette import Cassette as Cassette
    from mini_harness.cassette import DamagedCassette as DamagedCassette
    from mini_harness.cassette import Exchange as Exchange
    from mini_harness.checks import Check as Check
    from mini_harness.checks import CheckResult as CheckResult
    from mini_harness.checks import CheckVerdict as CheckVerdict
    from mini_harness.checks import ExitCheck as ExitCheck
    from mini_harness.claims import Claim as Claim
    from mini_harness.claims import Evidence as Evidence
    from mini_harness.claims import Finding as Finding
    from mini_harness.claims import Standing as Standing
    from mini_harness.clock import Clock as Clock
    from mini_harness.clock import RealClock as RealClock
    from mini_harness.clock import VirtualClock as VirtualClock
    from mini_harness.compaction import Compaction as Compaction
    from mini_harness.compaction import DropOldOutputs as DropOldOutputs
    from mini_harness.compaction import Summary as Summary
    from mini_harness.corpus import BadCase as BadCase
    from mini_harness.corpus import Case as Case
    from mini_harness.corpus import Corpus as Corpus
    from mini_harness.corpus import DuplicateCase as DuplicateCase
    from mini_harness.deferred import DeferredTools as DeferredTools
    from mini_harness.doubt import AskInDoubt as AskInDoubt
    from mini_harness.envelope import Envelope as Envelope
    from mini_harness.envelope import EnvelopeStatus as EnvelopeStatus
    from mini_harness.envelope import Role as Role
    from mini_harness.envelope import envelope_template as envelope_template
    from mini_harness.envelope import fill_in as fill_in
    from mini_harness.envelope import hand_off as hand_off
    from mini_harness.envelope import read_envelope as read_envelope
    from mini_harness.envelope import task_id_of as task_id_of
    from mini_harness.events import Event as Event
    from mini_harness.events import EventType as EventType
    from mini_harness.events import Sink as Sink
    from mini_harness.evidence import Verify as Verify
    from mini_harness.evidence import standing_of as standing_of
    from mini_harness.expectation import Expectation as Expectation
    from mini_harness.export import DamagedTrace as DamagedTrace
    from mini_harness.faults import Fault as Fault
    from mini_harness.faults import FaultKind as FaultKind
    from mini_harness.faults import Faults as Faults
    from mini_harness.faults import ProcessCut as ProcessCut
    from mini_harness.frozen import NotJson as NotJson
    from mini_harness.gate import Gate as Gate
    from mini_harness.gate import GateFinding as GateFinding
    from mini_harness.gate import GateResult as GateResult
    from mini_harness.gate import GateRule as GateRule
    from mini_harness.gate import GateVerdict as GateVerdict
    from mini_harness.gate_baseline import CostRise as CostRise
    from mini_harness.gate_baseline import NoRegression as NoRegression
    from mini_harness.gate_file import BadGate as BadGate
    from mini_harness.gate_file import load_gate as load_gate
    from mini_harness.gate_rules import Cost as Cost
    from mini_harness.gate_rules import Coverage as Coverage
    from mini_harness.gate_rules import Flaky as Flaky
    from mini_harness.gate_rules import Forbidden as Forbidden
    from mini_harness.gate_rules import PassRate as PassRate
    from mini_harness.gate_rules import Steps as Steps
    from mini_harness.gate_rules import VerifiedShare as VerifiedShare
    from mini_harness.history import History as History
    from mini_harness.history import HistoryError as HistoryError
    from mini_harness.hook import Block as Block
    from mini_harness.hook import Hook as Hook
    from mini_harness.hook import HookEvent as HookEvent
    from mini_harness.hook import HookInput as HookInput
    from mini_harness.hooks import Hooks as Hooks
    from mini_harness.hooks import PromptBlocked as PromptBlocked
    from mini_harness.judge import Judge as Judge
    from mini_harness.judge import Opinion as Opinion
    from mini_harness.judge import Tally as Tally
    from mini_harness.layer import Failed as Failed
    from mini_harness.layer import Feedback as Feedback
    from mini_harness.layer import Interrupt as Interrupt
    from mini_harness.layer import Layer as Layer
    from mini_harness.layer import Pause as Pause
    from mini_harness.layer import Stop as Stop
    from mini_harness.layer import View as View
    from mini_harness.limits import FailFast as FailFast
    from mini_harness.limits import MaxSteps as MaxSteps
    from mini_harness.limits import MaxStepsExceeded as MaxStepsExceeded
    from mini_harness.loop import Harness as Harness
    from mini_harness.minimal import Minimal as Minimal
    from mini_harness.minimal import minimise as minimise
    from mini_harness.models.anthropic import AnthropicModel as AnthropicModel
    from mini_harness.models.base import Model as Model
    from mini_harness.models.base import ModelError as ModelError
    from mini_harness.models.mode import Mode as Mode
    from mini_harness.models.mode import choose_mode as choose_mode
    from mini_harness.models.scripted import DemoModel as DemoModel
    from mini_harness.models.scripted import ScriptedModel as ScriptedModel
    from mini_harness.models.scripted import ScriptEnded as ScriptEnded
    from mini_harness.outputs import LargeOutput as LargeOutput
    from mini_harness.outputs import LongError as LongError
    from mini_harness.parallel import ParallelReads as ParallelReads
    from mini_harness.policy import Policy as Policy
    from mini_harness.protocol import Decision as Decision
    from mini_harness.protocol import Final as Final
    from mini_harness.protocol import Observation as Observation
    from mini_harness.protocol import Outcome as Outcome
    from mini_harness.protocol import ToolCall as ToolCall
    from mini_harness.protocol import Turn as Turn
    from mini_harness.protocol import UnknownDecision as UnknownDecision
    from mini_harness.protocol import UnknownTool as UnknownTool
    from mini_harness.protocol import Usage as Usage
    from mini_harness.record import Record as Record
    from mini_harness.redact import hide as hide
    from mini_harness.regression import World as World
    from mini_harness.regression import run_case as run_case
    from mini_harness.regression import run_corpus as run_corpus
    from mini_harness.repeated import NoProgress as NoProgress
    from mini_harness.repeated import RepeatedCalls as RepeatedCalls
    from mini_harness.replay import Recorder as Recorder
    from mini_harness.replay import ReplayMiss as ReplayMiss
    from mini_harness.replay import ReplayModel as ReplayModel
    from mini_harness.replay import UnusedRecordings as UnusedRecordings
    from mini_harness.replies import RecordedError as RecordedError
    from mini_harness.results import CaseOutcome as CaseOutcome
    from mini_harness.results import CaseResult as CaseResult
    from mini_harness.results import FailureKind as FailureKind
    from mini_harness.results import Report as Report
    from mini_harness.retry import LimitsTime as LimitsTime
    from mini_harness.retry import Retry as Retry
    from mini_harness.rules import Judgement as Judgement
    from mini_harness.rules import Rule as Rule
    from mini_harness.rules import Verdict as Verdict
    from mini_harness.run import NotWaiting as NotWaiting
    from mini_harness.run import Run as Run
    from mini_harness.run import RunIsBusy as RunIsBusy
    from mini_harness.run import RunNotCompleted as RunNotCompleted
    from mini_harness.run import Status as Status
    from mini_harness.run import StopReason as StopReason
    from mini_harness.session import Session as Session
    from mini_harness.session_files import SessionInfo as SessionInfo
    from mini_harness.speakers import PermissionMode as PermissionMode
    from mini_harness.sync import run_sync as run_sync
    from mini_harness.timeout import ModelTimedOut as ModelTimedOut
    from mini_harness.timeout import Timeout as Timeout
    from mini_harness.timeout import ToolAbandoned as ToolAbandoned
    from mini_harness.timeout import ToolTimedOut as ToolTimedOut
    from mini_harness.tools.ask import AskUser as AskUser
    from mini_harness.tools.base import BaseTool as BaseTool
    from mini_harness.tools.base import Tool as Tool
    from mini_harness.tools.base import ToolExecutionContext as ToolExecutionContext
    from mini_harness.tools.base import ToolResult as ToolResult
    from mini_harness.tools.base import TransientError as TransientError
    from mini_harness.tools.call import Call as Call
    from mini_harness.tools.call import InvalidArguments as InvalidArguments
    from mini_harness.tools.default import (
        create_default_tool_registry as create_default_tool_registry,
    )
    from mini_harness.tools.edit import EditFile as EditFile
    from mini_harness.tools.files import ReadFile as ReadFile
    from mini_harness.tools.function import FunctionTool as FunctionTool
    from mini_harness.tools.function import tool as tool
    from mini_harness.tools.grep import Grep as Grep
    from mini_harness.tools.listing import Glob as Glob
    from mini_harness.tools.listing import ListFiles as ListFiles
    from mini_harness.tools.mcp.errors import McpError as McpError
    from mini_harness.tools.mcp.errors import McpRequestFailed as McpRequestFailed
    from mini_harness.tools.mcp.errors import McpServerFailed as McpServerFailed
    from mini_harness.tools.mcp.server import McpServer as McpServer
    from mini_harness.tools.mcp.tool import McpTool as McpTool
    from mini_harness.tools.registry import ToolRegistry as ToolRegistry
    from mini_harness.tools.search import ToolSearch as ToolSearch
    from mini_harness.tools.shell import Bash as Bash
    from mini_harness.tools.todo import Todo as Todo
    from mini_harness.tools.write import WriteFile as WriteFile
    from mini_harness.trace import Trace as Trace
    from mini_harness.transcript import DamagedSession as DamagedSession
    from mini_harness.transcript import SessionIsBusy as SessionIsBusy
    from mini_harness.volatile import VOLATILE as VOLATILE
    from mini_harness.volatile import Volatile as Volatile

_HOMES = {name: module for module, names in MODULES.items() for name in names}

__all__ = ["STEPS", "step", *_HOMES]  # noqa: PLE0604 - all of them are names


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mini_harness' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
