"""What went wrong between here and the Messages API, as one of the errors of this package.

The service's own ``type`` and ``error_code`` decide, the HTTP status only where they are missing:
an overload may be reported inside a response with status 200, and a spend limit comes as 429.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, NamedTuple

from mini_harness.models.anthropic_reply import Hide
from mini_harness.models.errors import (
    Evidence,
    ModelMisconfigured,
    ModelRejectedRequest,
    ModelUnavailable,
    ServiceError,
)

if TYPE_CHECKING:
    from anthropic import APIStatusError


class _Kind(NamedTuple):
    error: type[ServiceError]
    advice: str


_WAIT = _Kind(ModelUnavailable, "Try again a little later.")
_KINDS = {
    "authentication_error": _Kind(
        ModelMisconfigured, "The service doesn't know this key: check ANTHROPIC_API_KEY."
    ),
    "billing_error": _Kind(
        ModelMisconfigured, "The account has no credit or has reached a limit: waiting won't help."
    ),
    "permission_error": _Kind(
        ModelMisconfigured, "This key may not do that: check what it and its account may use."
    ),
    "not_found_error": _Kind(
        ModelMisconfigured, "No such model, or no such address: check MODEL_ID and base_url."
    ),
    "invalid_request_error": _Kind(
        ModelRejectedRequest, "Sending it again won't help: the request has to change."
    ),
    "request_too_large": _Kind(ModelRejectedRequest, "Shorten the conversation."),
    "timeout_error": _WAIT,
    "conflict_error": _WAIT,
    "rate_limit_error": _WAIT,
    "api_error": _WAIT,
    "overloaded_error": _WAIT,
}
_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
}


def from_status(error: APIStatusError, model_id: str, hide: Hide) -> ServiceError:
    """The error for an answer that says what went wrong."""
    kind = _KINDS[_type_of(error)]
    said = error.api_message if isinstance(error.api_message, str) else error.message
    said = hide(said)[:500]
    headline = (
        f"{model_id}: {error.status_code} {error.error_code or error.type or 'error'}: {said}"
    )
    evidence: Evidence = {
        "status": error.status_code,
        "request_id": error.request_id,
        "api_message": said,
    }
    if kind.error is ModelUnavailable:
        wait = retry_after(error.response.headers)
        return ModelUnavailable(f"{headline} {kind.advice}", retry_after=wait, **evidence)
    return kind.error(f"{headline} {kind.advice}", **evidence)


def from_silence(error: Exception, model_id: str, hide: Hide) -> ModelUnavailable:
    """The error where no answer arrived at all."""
    # The SDK says "Connection error." and keeps the reason behind it.
    cause = error if isinstance(error, TimeoutError) else error.__cause__ or error
    why = hide(f"{type(cause).__name__}: {cause}" if str(cause) else type(cause).__name__)[:500]
    return ModelUnavailable(
        f"{model_id}: no answer came ({why}). Try again; if it stays so, look at the network, "
        "at base_url and at the timeout."
    )


def _type_of(error: APIStatusError) -> str:
    if error.error_code and error.error_code.endswith("_spend_limit_reached"):
        return "billing_error"
    if isinstance(error.type, str) and error.type in _KINDS:
        return error.type
    fallback = "api_error" if error.status_code >= 500 else "invalid_request_error"
    return _TYPES.get(error.status_code, fallback)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How many seconds the service asks to wait (RFC 9110, 10.2.3), or None."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, "")) * unit
        if seconds >= 0 and math.isfinite(seconds):
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, date.timestamp() - time.time())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
