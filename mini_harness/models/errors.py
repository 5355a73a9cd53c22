"""How a model can fail. Whether trying again can help is declared by the class, never guessed.

Each error carries its evidence as attributes; its text says what to do. No text holds a key.
"""

from __future__ import annotations

from typing import ClassVar, TypedDict, Unpack

from mini_harness.models.base import ModelError
from mini_harness.protocol import Usage


class Evidence(TypedDict, total=False):
    """What is known about a failure."""

    status: int | None
    request_id: str | None
    api_message: str | None
    usage: Usage


class ServiceError(ModelError):
    """The root of all failures of a model that answers over the network.

    ``status`` is the HTTP status and ``request_id`` the service's name for the request, both
    None where no answer came; ``api_message`` is what the service said about it, or None;
    ``usage`` is what the turn cost all the same.
    """

    def __init__(self, message: str, **evidence: Unpack[Evidence]) -> None:
        super().__init__(message)
        self.status = evidence.get("status")
        self.request_id = evidence.get("request_id")
        self.api_message = evidence.get("api_message")
        self.usage = evidence.get("usage", Usage())


class ModelUnavailable(ServiceError):
    """No usable reply arrived this time: overload, rate limit, time-out, lost connection.

    ``retry_after`` is the wait in seconds that the service asks for, or None. It has no upper
    bound: whoever obeys it brings one.
    """

    transient: ClassVar[bool] = True

    def __init__(
        self, message: str, *, retry_after: float | None = None, **evidence: Unpack[Evidence]
    ) -> None:
        super().__init__(message, **evidence)
        self.retry_after = retry_after


class ModelMisconfigured(ServiceError):
    """Key, model id, permission or credit: somebody has to change a setting."""


class ModelRejectedRequest(ServiceError):
    """The service takes no such request, now or later."""


class ModelRefused(ServiceError):
    """The model declined to answer. ``category`` is the policy it names, or None."""

    def __init__(
        self, message: str, *, category: str | None = None, **evidence: Unpack[Evidence]
    ) -> None:
        super().__init__(message, **evidence)
        self.category = category


class ContextWindowExceeded(ServiceError):
    """The conversation has outgrown what the model can read at once."""


class ModelReplyUnusable(ServiceError):
    """A reply arrived whole, and it isn't one that this adapter knows how to act on."""
