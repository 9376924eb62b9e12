"""How the store API says no: an HTTP status and a small JSON object, which the client turns back into the very same
error."""

from typing import Any

from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import (
    Conflict,
    InvalidState,
    NotFound,
    QueueNotEmpty,
    SessionBusy,
    StoreUnavailable,
    StoreUnusable,
    Superseded,
)

STATUS: dict[type[Exception], int] = {
    Superseded: 403,
    NotFound: 404,
    Conflict: 409,
    InvalidState: 409,
    QueueNotEmpty: 409,
    SessionBusy: 409,
    ValueRefused: 422,
    StoreUnavailable: 503,
}
"""The errors that travel, by their exact type."""

_BY_NAME = {error.__name__: error for error in STATUS}


def problem(kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "message": message}


def error_of(status: int, body: object) -> Exception:
    """The error that an answer means. What says nothing that we know is an outage if it may pass by itself."""
    kind, message = _parts(body)
    if kind in _BY_NAME:
        return _BY_NAME[kind](message)
    told = f"the store API answered {status}: {message or 'nothing that this version understands'}"
    if status >= 500 or status < 400 or status in (408, 425, 429):
        return StoreUnavailable(told)
    return StoreUnusable(told)


def _parts(body: object) -> tuple[str, str]:
    if not isinstance(body, dict):
        return "", ""
    return str(body.get("type", "")), str(body.get("message", ""))
