"""How a model fails: which class, transient or permanent, and what the error carries."""

import asyncio
import pickle
import re
import socket
import traceback
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from mini_harness.models.anthropic import AnthropicModel
from mini_harness.models.anthropic_failures import from_silence, retry_after
from mini_harness.models.base import ModelError
from mini_harness.models.errors import (
    ModelMisconfigured,
    ModelRefused,
    ModelRejectedRequest,
    ModelUnavailable,
    ServiceError,
)
from mini_harness.protocol import Usage
from tests.standin import KEY, Action, Fault, StandIn, error

GOAL = [{"role": "user", "content": "Why is build-102 red?"}]


def failure(action: Action, **settings: Any) -> ServiceError:
    """What is raised, after exactly one request."""
    with StandIn([action]) as api:
        model = AnthropicModel("claude-x", api_key=KEY, base_url=api.url, **settings)
        with pytest.raises(ServiceError) as caught:
            asyncio.run(model.decide(GOAL, ()))
    assert len(api.seen) == 1
    return caught.value


@pytest.mark.parametrize(
    ("answer", "kind", "advice"),
    [
        (error(400), ModelRejectedRequest, "the request has to change"),
        (error(401), ModelMisconfigured, "ANTHROPIC_API_KEY"),
        (error(402), ModelMisconfigured, "waiting won't help"),
        (error(403), ModelMisconfigured, "may not do that"),
        (error(404), ModelMisconfigured, "MODEL_ID"),
        (error(408), ModelUnavailable, "later"),
        (error(409), ModelUnavailable, "later"),
        (error(413), ModelRejectedRequest, "Shorten"),
        (error(418, type="teapot"), ModelRejectedRequest, "the request has to change"),
        (error(422), ModelRejectedRequest, "the request has to change"),
        (error(429), ModelUnavailable, "later"),
        (error(500), ModelUnavailable, "later"),
        (error(503), ModelUnavailable, "later"),
        (error(504), ModelUnavailable, "later"),
        (error(529), ModelUnavailable, "later"),
        (error(500, type=None), ModelUnavailable, "later"),
        (error(403, type={"odd": 1}), ModelMisconfigured, "may not do that"),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_an_error_status_is_one_clear_error_after_one_request(
    answer: Any, kind: type[ServiceError], advice: str
) -> None:
    """Rows 13 to 18"""
    found = failure(answer)
    assert type(found) is kind
    assert found.transient is (kind is ModelUnavailable)
    assert (found.status, found.request_id, found.api_message) == (
        answer.status,
        "req_standin",
        "injected",
    )
    assert advice in str(found)
    assert "injected" in str(found)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(429, error_code="enforced_spend_limit_reached"), ModelMisconfigured),
        (error(402, error_code="linked_organization_spend_limit_reached"), ModelMisconfigured),
        (error(429, error_code="ramp_limit_exceeded"), ModelUnavailable),
        (error(400, type="overloaded_error"), ModelUnavailable),
        (error(500, type="invalid_request_error"), ModelRejectedRequest),
    ],
)
def test_what_the_service_calls_it_counts_more_than_the_status(
    answer: Any, kind: type[ServiceError]
) -> None:
    """Rows 16 and 26"""
    assert type(failure(answer)) is kind


def test_the_wait_that_the_service_asks_for_is_on_the_error() -> None:
    """Row 17"""
    found = failure(error(429, headers={"retry-after": "70"}))
    assert isinstance(found, ModelUnavailable)
    assert found.retry_after == 70.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "9", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "9", "retry-after-ms": "soon"}, 9.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
    ],
)
def test_retry_after_is_seconds_or_nothing(headers: dict[str, str], seconds: float | None) -> None:
    """Row 17"""
    assert retry_after(headers) == seconds


def test_retry_after_may_be_a_date() -> None:
    """Row 17"""
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    wait = retry_after({"retry-after": later})
    assert wait is not None
    assert 3000 < wait <= 3600


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (Fault.RESET, "Error"),
        (Fault.SHORT, "RemoteProtocolError"),
        (Fault.SILENCE, "Timeout"),
        (Fault.TRICKLE, "TimeoutError"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_connection_that_gives_no_answer_is_a_transient_error(fault: Fault, why: str) -> None:
    """Rows 19, 20 and 25"""
    found = failure(fault, timeout=1.0 if fault in (Fault.SILENCE, Fault.TRICKLE) else 60.0)
    assert type(found) is ModelUnavailable
    assert (found.transient, found.status, found.retry_after) == (True, None, None)
    assert re.search(rf"no answer came \(\w*{why}", str(found))


def test_a_server_that_is_not_there_is_a_transient_error() -> None:
    """Row 20"""
    with socket.socket() as reserved:
        # Bound and not listening: whoever connects is refused.
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        model = AnthropicModel("claude-x", api_key=KEY, base_url=url)
        with pytest.raises(ModelUnavailable, match="ConnectError"):
            asyncio.run(model.decide(GOAL, ()))


def test_no_error_shows_the_key_that_the_service_echoes() -> None:
    """Row 13"""
    found = failure(error(401, f"invalid x-api-key: {KEY}"))
    shown = "".join(traceback.format_exception(found))
    for picture in (str(found), repr(found), str(vars(found)), shown):
        assert KEY not in picture
    assert "invalid x-api-key: [key]" in str(found)


def test_no_error_shows_the_key_that_the_network_layer_echoes() -> None:
    """Row 29: an illegal header is reported with its value."""
    found = from_silence(
        OSError(f"illegal header {KEY}"), "claude-x", lambda s: s.replace(KEY, "*")
    )
    assert "illegal header *" in str(found)


@pytest.mark.parametrize("action", [error(401), Fault.RESET], ids=["401", "reset"])
def test_no_error_drags_the_request_along(action: Action) -> None:
    """The SDK's error holds the request, and that holds the key."""
    found = failure(action)
    assert (found.__cause__, found.__context__) == (None, None)


def test_an_error_survives_pickling_with_its_evidence() -> None:
    found = ModelUnavailable("Busy.", retry_after=3.0, status=529, usage=Usage(1, 2))
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is ModelUnavailable
    assert vars(again) == vars(found)
    assert str(again) == "Busy."


def test_every_error_is_a_model_error_and_permanent_unless_it_says_otherwise() -> None:
    """A20"""
    assert issubclass(ServiceError, ModelError)
    assert not ServiceError("x").transient
    assert not ModelRefused("x").transient
    assert ModelUnavailable("x").transient
