"""What can go wrong on the wire, as codes of the failure taxonomy."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace

from pilothouse.models.provider import FailureCode, ModelFailure

EXCERPT = 500
"""Characters of a failure's text that are kept; servers send whole pages."""

_RETRYABLE = frozenset({408, 409, 429})
_TIMEOUTS = frozenset({408, 504})
_REFUSALS: Mapping[str, FailureCode] = {
    "authentication_error": "F-SEC",
    "permission_error": "F-SEC",
    "content_policy_violation": "F-SEC",
    "billing_error": "F-DEP",
    "insufficient_quota": "F-DEP",
    "invalid_prompt": "F-INP",
    "invalid_request_error": "F-INP",
    "not_found_error": "F-INP",
    "request_too_large": "F-INP",
}
_NOT_PRINTABLE = re.compile(r"[^\S ]+|[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")


class CallError(Exception):
    """Ends one try of a model call; never leaves this package."""

    def __init__(self, failure: ModelFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def call_error(code: FailureCode, message: str, *, retryable: bool = False) -> CallError:
    return CallError(ModelFailure(code, message, retryable))


def status_error(status: int, body: str, retry_after: float | None) -> CallError:
    """The failure that an HTTP status other than 2xx means; `body` is what the server said about it."""
    reason = _reason(body)
    message = f"the model server answered {status}" + (f": {reason}" if reason else "")
    retryable = status in _RETRYABLE or status >= 500
    return CallError(ModelFailure(_code(status), message, retryable, status, retry_after))


def server_error(error: object) -> CallError:
    """The failure that a server tells inside of a stream: an error object, or any other value. Its `type` (or its
    `code`, where that is a word) says whether the request was wrong; anything else may pass."""
    fields = error if isinstance(error, dict) else {"message": error}
    message = f"the model server failed: {fields.get('message')}"
    for word in (fields.get("type"), fields.get("code")):
        if isinstance(word, str) and (code := _REFUSALS.get(word)):
            return call_error(code, message)
    return call_error("F-DEP", message, retryable=True)


def presentable(failure: ModelFailure, secret: str | None) -> ModelFailure:
    """The failure as it may be stored and shown: cut to `EXCERPT`, on one line, the key taken out.

    The key goes first, else the cut could leave its beginning.
    """
    message = failure.message.replace(secret, "[redacted]") if secret else failure.message
    return replace(failure, message=_NOT_PRINTABLE.sub(" ", message).strip()[:EXCERPT])


def _code(status: int) -> FailureCode:
    if status in _TIMEOUTS:
        return "F-TMO"
    if status in (401, 403):
        return "F-SEC"
    if status in _RETRYABLE or status >= 500:
        return "F-DEP"
    return "F-INP"


def _reason(body: str) -> str:
    """`error.message` where the body is the usual error object, else the body itself."""
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError):
        return body
    error = parsed.get("error") if isinstance(parsed, dict) else None
    message = error.get("message") if isinstance(error, dict) else error
    return message if isinstance(message, str) else body
