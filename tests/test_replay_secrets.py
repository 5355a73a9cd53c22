"""No secret gets into a recording, whichever way it goes, and the recording still replays."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mini_harness.cassette import Cassette
from mini_harness.models.errors import ModelUnavailable
from mini_harness.models.scripted import ScriptedModel
from mini_harness.protocol import Final, ToolCall, Turn
from mini_harness.redact import MASK
from mini_harness.replay import Recorder, ReplayModel
from mini_harness.volatile import Request

KEY, TOKEN, CRUMB, QUERY = "k9Fz7Qw2Lm4X", "t0kEn-5H8dP3vB6n", "c7Yr2Ns9Tg1W", "q4Jb8Vx3Ka6Z"
SECRETS = (KEY, TOKEN, CRUMB, QUERY)


def seen(result: Any, **more: Any) -> list[dict[str, Any]]:
    text = result if isinstance(result, str) else json.dumps(result)
    told = {"role": "tool", "tool": "fetch", "tool_result": text, "call_id": "c1", **more}
    return [{"role": "user", "content": "go"}, told]


HEADERS: list[Any] = [
    {"x-api-key": KEY, "Authorization": f"Bearer {TOKEN}", "Set-Cookie": f"sid={CRUMB}; Path=/"},
    {"X-API-KEY": KEY, "AUTHORIZATION": f"ApiKey {TOKEN}", "COOKIE": f"a=b; sid={CRUMB}"},
    [["X-Api-Key", KEY], ["authorization", TOKEN], ["sEt-cOOkie", f"sid={CRUMB}"]],
    [{"name": "x-api-key", "value": KEY}, {"name": "Proxy-Authorization", "value": TOKEN}],
    {"headers": {"x-goog-api-key": [KEY], "x-auth-token": TOKEN, "cookies": {"sid": CRUMB}}},
    f"X-Api-Key: {KEY}\nAuthorization: Digest {TOKEN}\nSet-Cookie: sid={CRUMB}; HttpOnly\n",
    f"x-api-key: {KEY}\r\nauthorization: {TOKEN}\r\nset-cookie: theme=dark; sid={CRUMB}\r\n",
]


@pytest.mark.parametrize("headers", HEADERS, ids=repr)
@pytest.mark.parametrize("place", ["result", "metadata", "raw", "error", "reply"])
def test_no_value_of_a_header_is_in_the_file_and_it_replays(
    headers: Any, place: str, tmp_path: Path
) -> None:
    """report C04: headers in any case, a cookie that is set, the key in address and body; also
    after it was loaded and saved without what is unused"""
    body = f"GET https://a.example/v1?key={QUERY}&n=1: your {QUERY}, {KEY} and {TOKEN} are fine"
    history = seen(headers if place == "result" else body)
    if place in ("metadata", "raw"):
        history[1][place] = {"sent": headers}
    reply: Any = Final(body, raw=headers if place == "reply" else None)
    if place == "error":
        reply = ModelUnavailable(body, api_message=json.dumps(headers))
    path, again = tmp_path / "tape.jsonl", tmp_path / "again.jsonl"
    recorder = Recorder(ScriptedModel([reply, "unused"]), path)
    for asked in (history, [*history, *history]):
        try:
            recorder.decide(asked, [])
        except ModelUnavailable:
            assert place == "error"
    replay = ReplayModel(path)
    _ask(replay, history)
    replay.drop_unused().save(again)
    last = ReplayModel(again)
    _ask(last, history)
    last.check_all_used()
    shown = json.dumps(headers)
    for text in (path.read_text(encoding="utf-8"), again.read_text(encoding="utf-8")):
        assert MASK in text
        assert "hidden] hidden" not in text
        assert QUERY not in text
        assert not [value for value in SECRETS if value in text and value in shown]


def _ask(model: Any, history: Any) -> Any:
    try:
        return model.decide(history, [])
    except ModelUnavailable as error:
        return error


def test_a_secret_of_the_environment_is_hidden_and_in_a_schema_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FARM_API_KEY", KEY)
    tools: Any = [{"name": "fetch", "description": f"Use {KEY}.", "input_schema": {}}]
    recorder = Recorder(ScriptedModel([Final(f"It is {KEY}")]))
    recorder.decide(seen(f"key {KEY}"), tools)
    assert KEY not in json.dumps(recorder.cassette.to_list())
    assert KEY not in str(recorder.cassette.exchanges)
    assert ReplayModel(recorder.cassette).decide(seen(f"key {KEY}"), tools) == Final(
        f"It is {MASK}"
    )


def test_a_secret_that_is_another_one_each_time_is_no_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """report C04: replay still matches"""

    def history(crumb: str, key: str) -> Any:
        return seen(f"Set-Cookie: sid={crumb}\nkey {key}", metadata={"password": crumb})

    monkeypatch.setenv("FARM_API_KEY", KEY)
    recorder = Recorder(ScriptedModel(["yes"]))
    recorder.decide(history(CRUMB, KEY), [])
    monkeypatch.setenv("FARM_API_KEY", TOKEN)
    assert ReplayModel(recorder.cassette).decide(history(QUERY, TOKEN), []) == "yes"


def test_a_schema_that_names_a_password_stays_a_schema() -> None:
    schema = {"properties": {"password": {"type": "string"}, "cookie": {"type": "string"}}}
    tools = [{"name": "login", "description": "Log in.", "input_schema": schema}]
    assert Request(seen("ok"), tools).tools == tools
    recorder = Recorder(ScriptedModel(["ok"]))
    recorder.decide(seen("ok"), tools)
    assert recorder.cassette.to_list()[1]["tools"] == tools


@pytest.mark.parametrize(
    "text",
    [
        f"https://a.example/back?state=1&code={QUERY}",
        f"https://a.example/f?X-Amz-Signature={'a' * 20}",
        "x-api-key: openthedoorplease",
        "AUTHORIZATION: Basic openthedoorplease",
        "Cookie: theme=openthedoorplease",
    ],
)
def test_a_value_that_is_a_mere_word_is_hidden_where_it_stands(text: str) -> None:
    recorder = Recorder(ScriptedModel([text]))
    recorder.decide(seen("ok"), [])
    reply = ReplayModel(recorder.cassette).decide(seen("ok"), [])
    assert MASK in reply
    assert not [each for each in (QUERY, "a" * 20, "openthedoorplease") if each in reply]


def test_a_secret_that_only_the_answer_gives_away_is_hidden_in_its_request_too() -> None:
    history = seen(f"the magic word is {KEY}")
    call = Turn((ToolCall("login", {"password": KEY}),))
    recorder = Recorder(ScriptedModel([call]))
    recorder.decide(history, [])
    lines = json.loads(json.dumps(recorder.cassette.to_list()))
    assert KEY not in json.dumps(lines)
    replayed = ReplayModel.from_list(lines).decide(history, [])
    assert replayed.calls[0].arguments == {"password": MASK}
    assert Cassette.from_list(lines).to_list() == lines


@pytest.mark.parametrize("order", [1, -1])
def test_a_secret_that_one_exchange_gives_away_is_hidden_in_all(order: int, tmp_path: Path) -> None:
    plain, telling = seen(f"it says {KEY}"), seen({"x-api-key": KEY})
    path = tmp_path / "tape.jsonl"
    recorder = Recorder(ScriptedModel([f"so {KEY}", "ok"][::order]), path)
    for history in [plain, telling][::order]:
        recorder.decide(history, [])
    assert KEY not in path.read_text(encoding="utf-8")
    replay = ReplayModel(path)
    assert replay.decide(plain, []) == f"so {MASK}"
    assert replay.decide(telling, []) == "ok"
    replay.drop_unused().save(path)
    assert len(Cassette.load(path)) == 2
    assert KEY not in path.read_text(encoding="utf-8")


def test_what_a_hand_wrote_into_a_recording_is_cleaned_when_it_is_saved(tmp_path: Path) -> None:
    recorder = Recorder(ScriptedModel([0, 1]))
    recorder.decide(seen("it says SOMETHING"), [])
    recorder.decide(seen({"x-api-key": "none"}), [])
    text = json.dumps(recorder.cassette.to_list())
    lines = json.loads(text.replace("SOMETHING", KEY).replace(MASK, KEY).replace("none", KEY))
    assert json.dumps(lines).count(KEY) == 2
    assert KEY not in json.dumps(Cassette.from_list(lines).to_list())


def test_a_secret_that_the_environment_got_later_is_hidden_when_it_is_saved(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorder = Recorder(ScriptedModel([Final("ok")]))
    recorder.decide(seen(f"it says {KEY}"), [])
    monkeypatch.setenv("FARM_API_KEY", KEY)
    recorder.cassette.save(tmp_path / "tape.jsonl")
    assert KEY not in (tmp_path / "tape.jsonl").read_text(encoding="utf-8")


def test_what_was_saved_before_its_secret_was_known_is_cleaned_when_it_is_saved_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "tape.jsonl"
    recorder = Recorder(ScriptedModel([Final("ok")]), path)
    recorder.decide(seen(f"it says {KEY}"), [])
    assert KEY in path.read_text(encoding="utf-8")
    monkeypatch.setenv("FARM_API_KEY", KEY)
    Cassette.load(path).save(path)
    assert KEY not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "cookie = request.cookies.get(name)",
        "Cookie: none was set",
        "authorization = granted",
        "https://a.example/?sort_key=created_at&monkey=1234567&code=404",
        "The key = value pairs are sorted.",
        "x = 1; key = 2",
        "Authorization: none",
    ],
)
def test_what_only_speaks_of_such_things_stays(text: str) -> None:
    recorder = Recorder(ScriptedModel([text]))
    recorder.decide(seen("ok"), [])
    assert ReplayModel(recorder.cassette).decide(seen("ok"), []) == text


NAMES = st.sampled_from(["x-api-key", "Authorization", "proxy-authorization", "X-Auth-Token"])
VALUES = st.from_regex(r"\A[a-z]{3}[0-9]{3}[A-Z]{3}[0-9a-zA-Z]{0,20}\Z")


@given(NAMES, st.data(), VALUES)
def test_a_header_is_hidden_in_any_case_and_form(
    name: str, data: st.DataObject, value: str
) -> None:
    cased = "".join(c.upper() if data.draw(st.booleans()) else c.lower() for c in name)
    form = data.draw(
        st.sampled_from(
            [
                {cased: value},
                [[cased, value]],
                [{"name": cased, "value": value}],
                f"{cased}: {value}",
                f'{{"{cased}": "{value}"}}',
            ]
        )
    )
    recorder = Recorder(ScriptedModel([Final(f"I read {value} there", raw=[form])]))
    recorder.decide(seen("ok"), [])
    assert value not in json.dumps(recorder.cassette.to_list())
