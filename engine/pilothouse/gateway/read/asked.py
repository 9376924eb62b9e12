"""What a request asks for: its path and its query, checked."""

import re
from uuid import UUID

from starlette.requests import Request

from pilothouse.gateway.refusals import BadRequest

LARGEST = 2**31 - 1
"""The largest number that any of a run's counters reaches."""

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_WORKFLOW = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_ID = re.compile(r"[0-9a-f]{1,8}(-[0-9a-f]{0,4}(-[0-9a-f]{0,4}(-[0-9a-f]{0,4}(-[0-9a-f]{0,12})?)?)?)?")


def namespace(request: Request) -> str:
    name: str = request.path_params["namespace"]
    return _matching(_NAMESPACE, name, "a namespace is at most 63 lower-case letters, digits and -")


def run(request: Request) -> UUID:
    found: UUID = request.path_params["run"]
    return found


def workflow(request: Request) -> str | None:
    """The Workflow that is named in the query."""
    name = request.query_params.get("workflow")
    return None if name is None else _matching(_WORKFLOW, name, "`workflow` is no name that a Workflow can have")


def id_bounds(request: Request) -> tuple[UUID, UUID]:
    """The least and the greatest id that begins as the query's `id`; without one, of all ids."""
    text = request.query_params.get("id")
    digits = (
        "" if text is None else _matching(_ID, text.lower(), "`id` is the beginning of a run's id").replace("-", "")
    )
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))


def maybe_id(request: Request, name: str) -> UUID | None:
    text = request.query_params.get(name)
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise BadRequest(f"`{name}` is no id") from None


def maybe_number(request: Request, name: str) -> int | None:
    """A number of the query from 0 to LARGEST."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(LARGEST)) and int(text) <= LARGEST):
        raise BadRequest(f"`{name}` is no number from 0 to {LARGEST}")
    return int(text)


def after(request: Request) -> int:
    """How many items of a list are known already."""
    return maybe_number(request, "after") or 0


def number(request: Request, name: str, largest: int) -> int:
    """A number of the query, at most the largest, which is also what is meant without it."""
    given = maybe_number(request, name)
    return largest if given is None else min(given, largest)


def _matching(pattern: re.Pattern[str], text: str, otherwise: str) -> str:
    if pattern.fullmatch(text) is None:
        raise BadRequest(otherwise)
    return text
