"""Secrets: what counts as one, and that none of them leaves by any door."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import mini_harness
from mini_harness import (
    Approval,
    ApprovalRequest,
    Event,
    Harness,
    Outcome,
    Policy,
    Run,
    ScriptedModel,
    Trace,
    VirtualClock,
    approve_all,
    run_sync,
    tool,
)
from mini_harness.frozen import freeze
from mini_harness.redact import MASK, MOST, Redactor, hide
from mini_harness.tools.shell import Bash
from mini_harness.views import ApprovalPanel
from mini_harness.views.explorer import TraceExplorer
from tests.displays import displayed

SECRET = "tvly-0123456789abcdef"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    monkeypatch.setenv("TAVILY_API_KEY", SECRET)
    return Redactor()


@pytest.mark.parametrize(
    "text",
    [
        f"found {SECRET} in it",
        f"X={SECRET}",
        f"{SECRET[:9]}\n{SECRET[9:]}",
        f"{SECRET[:9]}\r\n    {SECRET[9:]}",
        f'{{"k": "{SECRET}"}}',
    ],
)
def test_a_value_of_the_environment_is_hidden_wherever_it_turns_up(
    known: Redactor, text: str
) -> None:
    """report P08: also when it is split over two lines of output"""
    shown = known.hidden(text)
    assert MASK in shown
    assert SECRET not in "".join(shown.split())


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer abcdef0123456789",
        "authorization: basic dXNlcjpwYXNzd29yZA==",
        "password=correct-horse",
        'DB_PASSWORD = "correct-horse"',
        "{'api_key': 'abcdef0123456789'}",
        "postgres://user:correct-horse@db/shop",
        "curl --token abcdef0123456789 -v",
        'password: "correct-horse battery"',
        "Authorization: Token abcdef0123456789",
        "Bearer\tabcdef0123456789abc",
        "sk-ant-abcdef0123456789",
        "ghp_abcdef0123456789abcdef0123",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVm",
        "-----BEGIN RSA PRIVATE KEY-----\nabcdef0123456789\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_value_beside_the_name_of_a_secret_is_hidden_in_text(text: str) -> None:
    """report P08"""
    shown = Redactor().hidden(text)
    assert MASK in shown
    parts = ("abcdef0123456789", "dXNlcjpwYXNzd29yZA", "correct-horse", "eyJzdWI")
    for secret in parts:
        assert secret not in shown


@pytest.mark.parametrize(
    "text",
    [
        "input_tokens: 123456789",
        "the password is wrong",
        "token: 5",
        "monkey=bananas-and-more",
        "a basic introduction to bearer tokens",
        "password = getpass.getpass()",
        "token: Optional[str] = None",
        "credentials: required",
        "token = tokenizer.next_token(x)",
        "connect(password=password)",
        '{"url":"http://localhost:8888/a","port":1,"mail":"a@b.de"}',
        "http://localhost:4873/@types/node",
    ],
)
def test_counts_code_and_mere_talk_are_left_alone(text: str) -> None:
    """report P08: token counts aren't masked"""
    assert Redactor().hidden(text) is text


def test_the_filter_leaves_the_source_of_this_package_as_it_is() -> None:
    redactor = Redactor()
    for path in Path(mini_harness.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert redactor.hidden(text) is text, path


@pytest.mark.parametrize("rest", [SECRET[:-3], f"head {SECRET[:12]}\n[... 9 bytes left out ...]"])
def test_what_a_cut_has_left_of_a_secret_is_hidden(known: Redactor, rest: str) -> None:
    """report P08"""
    assert SECRET[:12] not in known.hidden(rest)
    assert SECRET[:12] not in known.for_people(rest)


def test_a_secret_is_found_as_json_and_python_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """report P08"""
    secret = 'pa"ss\\word/9Zq'
    monkeypatch.setenv("DB_PASS", secret)
    redactor = Redactor()
    for text in (secret, json.dumps({"v": secret}), repr([secret])):
        assert "word/9Zq" not in redactor.hidden(text)


@pytest.mark.parametrize("secret", ["first-line-abc1\nmiddle-line-2\nthird-line-ghi3", "k3y" * 900])
def test_a_secret_of_the_environment_may_be_long_and_have_lines(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("APP_SECRET", secret)
    assert Redactor().hidden(f"it is {secret}.") == f"it is {MASK}."


def test_a_name_or_a_type_in_arguments_is_no_word_of_the_harness() -> None:
    redactor = Redactor()
    redactor.hidden(freeze({"password": "a8f5f167f44f4964e6c998dee827110c"}))
    wire = {
        "type": "tool",
        "name": "find",
        "call_id": "c",
        "arguments": {"name": "hunter2-hunter2"},
    }
    redactor.hidden(freeze({"token": "hunter2-hunter2"}))
    assert redactor.hidden(freeze({"calls": [wire]}))["calls"][0]["arguments"] == {"name": MASK}
    assert redactor.hidden("in with a8f5f167f44f4964e6c998dee827110c") == f"in with {MASK}"


@pytest.mark.parametrize(
    "unit",
    ["://:", "token=", "token=1.", "bearer ", "-", "--", "a--", "--token-", "eyJ-", "A_", "-----B"],
)
def test_no_text_keeps_the_filter_busy(unit: str) -> None:
    """Its time grows with the length and not with its square: compared, not measured."""
    redactor, text = Redactor(), unit * (16_000 // len(unit))

    def cost(size: int) -> float:
        began = time.process_time()
        redactor.hidden(text[:size] + str(size))
        return time.process_time() - began

    eighth = min(cost(len(text) // 8) for _ in range(3))
    assert min(cost(len(text)) for _ in range(2)) < 20 * eighth + 0.05


def test_a_common_word_is_no_secret_though_a_variable_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "postgres")
    assert Redactor().hidden("the postgres server") == "the postgres server"


def test_many_secrets_in_arguments_cost_no_more_than_a_bounded_number() -> None:
    redactor = Redactor()
    for number in range(3 * MOST):
        redactor.hidden(freeze({"token": f"abcdef-{number:012}"}))
    assert len(redactor._learned) <= MOST + 3


def test_a_value_under_the_name_of_a_secret_is_hidden_at_any_depth_and_then_everywhere() -> None:
    """report P08: {'password': …} nested"""
    redactor = Redactor()
    value = freeze({"before": "correct-horse", "deep": [{"password": "correct-horse"}], "n": 3})
    assert redactor.hidden(value) == {
        "before": MASK,
        "deep": [{"password": MASK}],
        "n": 3,
    }
    assert redactor.hidden("later: correct-horse") == f"later: {MASK}"
    assert redactor.hidden(freeze({"password": None, "token": ""})) == {
        "password": None,
        "token": "",
    }


def test_a_secret_that_is_a_key_is_hidden_too(known: Redactor) -> None:
    assert known.hidden(freeze({SECRET: 1})) == {MASK: 1}


def test_a_value_without_a_secret_is_the_very_same_value(known: Redactor) -> None:
    value = freeze({"a": ["x", {"usage": 5}]})
    assert known.hidden(value) is value
    assert known.hidden(value) is value


def test_a_text_that_came_by_before_it_became_a_secret_is_hidden_from_then_on() -> None:
    redactor = Redactor()
    assert redactor.hidden("blue-elephant") == "blue-elephant"
    redactor.hidden(freeze({"secret": "blue-elephant"}))
    assert redactor.hidden("blue-elephant") == MASK


def test_hide_refuses_what_is_so_short_that_ordinary_text_would_go_with_it() -> None:
    with pytest.raises(ValueError, match="at least 8"):
        hide("failed")


@tool
def set_key(key: str, password: str = "") -> str:
    """Store a key."""
    assert key == SECRET
    return f"stored {key} and {password}"


@tool
def explode(key: str) -> str:
    """Fail with the key in the text."""
    raise OSError(f"refused: {key}")


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool", "name": name, "arguments": arguments}


def test_no_secret_leaves_a_run_and_the_tool_still_gets_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """report P08: environment, arguments, output, errors, unknown tools; all sinks see the mask"""
    monkeypatch.setenv("TAVILY_API_KEY", SECRET)
    (tmp_path / "notes.txt").write_text(f"the key\n{SECRET}\n", encoding="utf-8")
    script = [
        call("set_key", key=SECRET, password="correct-horse"),
        call("explode", key=SECRET),
        call("bash", command="env; cat notes.txt"),
        call(f"tool-{SECRET}"),
        call("set_key", key=1, password=SECRET),
        f"junk {SECRET}",
        {"type": "final", "output": {"said": SECRET, "also": "correct-horse"}},
    ]
    events: list[Event] = []
    lines: list[str] = []
    run = Harness(
        ScriptedModel(script),
        [set_key, explode, Bash()],
        sinks=[events.append, lambda event: lines.extend((str(event), event.to_json()))],
        clock=VirtualClock(),
        cwd=tmp_path,
    ).run_sync(f"my key is {SECRET}")
    left = "\n".join([*lines, repr(events), json.dumps(run.unwrap())])
    assert SECRET not in left
    assert "correct-horse" not in left
    assert left.count(MASK) > 20
    stored = next(m for m in run.history.messages if m.get("tool") == "set_key")
    assert stored["tool_result"] == f"stored {MASK} and correct-horse", "the model sent it itself"


@pytest.mark.parametrize("value", ["approve_all", "call_deploy_0_1", "arguments", "deploy", "ok"])
def test_a_model_that_calls_the_harness_words_secrets_spoils_no_record(value: str) -> None:
    @tool
    def deploy(secret: str) -> str:
        """Deploy."""
        return "deployed"

    script = [call("deploy", secret=f"{value}-x1"), call("deploy", secret=value), "junk"]
    trace = Trace()
    harness = Harness(
        ScriptedModel([*script, {"type": "final", "output": value}]),
        [deploy],
        layers=[Policy(approver=approve_all)],
        sinks=[trace],
        clock=VirtualClock(),
    )
    run = harness.run_sync("go")
    assert run.unwrap() in (value, MASK)
    again = Run.fold(trace.events)
    assert [m.get("call_id") for m in again.history.messages] == [
        m.get("call_id") for m in run.history.messages
    ]
    assert "approve_all approved deploy" in str(trace.table())


def test_a_secret_that_the_model_made_up_hides_no_command_from_a_person(tmp_path: Path) -> None:
    """What somebody approves must be seen: the mask is for records, not for questions."""
    line = "touch PWNED; echo token=$(touch${IFS}X)"
    script = [call("set_key", key="a", password=line), call("bash", command=line)]
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        asked.append(str(request))
        return request.deny()

    trace = Trace()
    Harness(
        ScriptedModel([script, {"type": "final", "output": "ok"}]),
        [set_key, Bash()],
        layers=[Policy(approver=approver)],
        sinks=[trace],
        cwd=tmp_path,
    ).run_sync("go")
    assert list(tmp_path.iterdir()) == []
    assert line in asked[1]
    assert line not in trace.to_jsonl()


def test_a_call_that_is_read_back_with_a_mask_in_it_never_runs() -> None:
    """What the record doesn't keep can't be run again: the model is told."""
    ran: list[str] = []

    @tool
    def sign(password: str) -> str:
        """Sign."""
        ran.append(password)
        return "signed"

    script = [call("sign", password="correct-horse"), {"type": "final", "output": "ok"}]
    events: list[Event] = []
    Harness(ScriptedModel(script), [sign], sinks=[events.append]).run_sync("go")
    assert ran == ["correct-horse"]
    again = Run.fold(events[:2])
    more = ScriptedModel([{"type": "final", "output": "ok"}])
    harness = Harness(more, [sign], sinks=[events.append])
    run_sync(harness.resume(again))
    assert ran == ["correct-horse"]
    seen = again.history.messages[-2]
    assert seen["outcome"] == Outcome.INVALID_ARGUMENTS
    assert MASK in seen["tool_result"]


def test_no_secret_is_in_any_table_drawing_widget_export_or_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """report P08: environment, arguments, output; trace, files, exports, HTML, notebook output"""
    monkeypatch.setenv("TAVILY_API_KEY", SECRET)
    (tmp_path / "notes.txt").write_text(f"{SECRET}\n", encoding="utf-8")
    script = [
        call("set_key", key=SECRET, password="correct-horse"),
        call("bash", command=f"cat notes.txt; echo {SECRET}"),
        call("explode", key=SECRET),
        {"type": "final", "output": f"it is {SECRET}"},
    ]
    trace = Trace()
    seen: list[str] = []

    def approver(request: ApprovalRequest) -> Approval:
        seen.append(f"{request} {request!r}")
        return request.approve()

    layers = [Policy(approver=approver)]
    tools = [set_key, explode, Bash()]
    run = Harness(
        ScriptedModel(script), tools, layers=layers, sinks=[trace], cwd=tmp_path
    ).run_sync("go")
    asks = Harness(ScriptedModel(script), tools, layers=[Policy()], sinks=[trace], cwd=tmp_path)
    paused = asks.run_sync(f"with {SECRET}")
    trace.save(tmp_path / "trace.jsonl")
    trace.timeline().save(tmp_path / "timeline.svg")
    provider, spans = TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    trace.to_otel(provider, content=True)
    explorer = TraceExplorer(trace, run)
    left = [
        *seen,
        str(trace.table()),
        trace.table()._repr_html_(),
        trace.to_jsonl(),
        trace.to_perfetto(),
        str(trace.to_dicts()),
        repr(trace.events),
        *(explorer.page(number + 1) for number in range(len(explorer.events))),
        str(displayed(explorer, monkeypatch)),
        str(displayed(ApprovalPanel(asks, paused), monkeypatch)),
        *(span.to_json() for span in spans.get_finished_spans()),
        f"{run} {run.unwrap()} {paused}",
        *(
            file.read_text(encoding="utf-8")
            for file in tmp_path.iterdir()
            if "notes" not in file.name
        ),
    ]
    assert [text for text in left if SECRET in text or "correct-horse" in text] == []
    assert sum(MASK in text for text in left) > 8
