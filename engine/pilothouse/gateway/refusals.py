"""How the gateway says no. The sentences are constant: they tell a stranger nothing about what is there."""

import logging
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from pilothouse.gateway.answers import json_answer
from pilothouse.gateway.kubeapi import KubeUnavailable, Unauthenticated
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError, StoreUnavailable, StoreUnusable
from pilothouse.store.remote.problems import STATUS, problem
from pilothouse.store.remote.wire import Misread

_log = logging.getLogger(__name__)

RETRY_AFTER = "1"
"""Seconds that a client is asked to wait in an outage."""


class Forbidden(Exception):  # noqa: N818 - the verdict
    """Known, and not allowed. The text is the reason in a word or two, for metrics and the log alone."""


class BadRequest(Exception):  # noqa: N818
    """A request that means nothing; the message says what is wrong with its form."""


class TooLarge(Exception):  # noqa: N818
    """More bytes than this route takes."""


class TooSlow(Exception):  # noqa: N818
    """The body did not come in time."""


class Busy(Exception):  # noqa: N818
    """No room for this request now."""


async def unauthenticated(request: Request, error: Exception) -> Response:
    request.state.refusal = str(error)
    message = "this request bears no token that is accepted here"
    return _no(401, "Unauthenticated", message, {"WWW-Authenticate": "Bearer"})


async def forbidden(request: Request, error: Exception) -> Response:
    request.state.refusal = str(error)
    return _no(403, "Forbidden", "the bearer of this token may not do that here")


async def bad_request(request: Request, error: Exception) -> Response:
    return _no(400, "BadRequest", str(error))


async def too_large(request: Request, error: Exception) -> Response:
    return _no(413, "TooLarge", str(error), {"Connection": "close"})


async def too_slow(request: Request, error: Exception) -> Response:
    return _no(408, "TooSlow", str(error), {"Connection": "close"})


async def gone(request: Request, error: Exception) -> Response:
    """Nobody is there to read this."""
    return Response(status_code=400)


async def busy(request: Request, error: Exception) -> Response:
    return _no(503, "Busy", "the gateway has too many large requests at once; try again", {"Retry-After": RETRY_AFTER})


async def kube_unavailable(request: Request, error: Exception) -> Response:
    _log.warning("the API server gives no answer: %s", error)
    message = "the Kubernetes API server gives no answer, so no token can be checked now; try again"
    return _no(503, "KubeUnavailable", message, {"Retry-After": RETRY_AFTER})


async def store_refused(request: Request, error: Exception) -> Response:
    """What the store refused, in its own words."""
    return _no(STATUS[type(error)], type(error).__name__, str(error))


async def store_away(request: Request, error: Exception) -> Response:
    """Where the database is, and what ails it, is for the log alone: a Pod only learns that it must wait."""
    _log.warning("the store cannot be used: %s: %s", type(error).__name__, error)
    headers = {"Retry-After": RETRY_AFTER}
    return _no(503, StoreUnavailable.__name__, "the store is away; try again", headers)


async def no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - it is registered for these alone
    return _no(error.status_code, "NoSuchRoute", "the gateway has no such route", error.headers)


HANDLERS = {
    Unauthenticated: unauthenticated,
    Forbidden: forbidden,
    BadRequest: bad_request,
    Misread: bad_request,
    TooLarge: too_large,
    TooSlow: too_slow,
    Busy: busy,
    ClientDisconnect: gone,
    KubeUnavailable: kube_unavailable,
    StoreUnusable: store_away,
    StoreUnavailable: store_away,
    StoreError: store_refused,
    ValueRefused: store_refused,
    HTTPException: no_route,
}
"""What answers each error of a route; a subclass's own line wins."""


def _no(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return json_answer(problem(kind, message), status, headers)
