"""What passes through the gateway: counted by route, told of in the log where it was refused or broke.

No token, body or text of an unexpected error goes into the log: they may hold what a tenant wrote.
"""

import logging
import time
import traceback
from collections.abc import MutableMapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pilothouse.gateway.answers import json_answer
from pilothouse.store.remote.problems import problem

_log = logging.getLogger(__name__)


class Metrics:
    """The gateway's figures."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter("pilothouse_gateway_requests_total", "Requests", ["route", "status"], registry=registry)
        self.seconds = Histogram(
            "pilothouse_gateway_request_seconds", "Time until an answer was sent", ["route"], registry=registry
        )
        self.refused_tokens = Counter(
            "pilothouse_gateway_refused_tokens_total", "Requests whose token was refused", ["reason"], registry=registry
        )


class Traffic:
    """ASGI middleware around every route."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        passage = _Passage(send)
        try:
            await self._app(scope, receive, passage.send)
        except Exception as error:  # a defect of ours: nothing of it may reach the other side
            _log.error("%s failed", _route(scope), extra={"fields": _broken(error)})
            if passage.status:
                raise
            await json_answer(_BROKEN, 500)(scope, receive, passage.send)
        finally:
            self._count(scope, passage)

    def _count(self, scope: Scope, passage: "_Passage") -> None:
        route, status = _route(scope), passage.status
        self._metrics.requests.labels(route, str(status)).inc()
        self._metrics.seconds.labels(route).observe(passage.seconds)
        refusal = scope.get("state", {}).get("refusal")
        if refusal is not None:
            self._metrics.refused_tokens.labels(refusal).inc()
        if status >= 400:
            fields = {"route": route, "status": status, "seconds": round(passage.seconds, 3)}
            if refusal is not None:
                fields["refused"] = refusal
            _log.info("not served", extra={"fields": fields})


class _Passage:
    """One answer on its way out; `status` is 0 before it has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._began = time.perf_counter()
        self.status = 0

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)


_BROKEN = problem("InternalError", "the gateway failed; its log says where")


def _route(scope: MutableMapping[str, Any]) -> str:
    """The route's pattern, so that no path that somebody made up becomes a label."""
    route = scope.get("route")
    return f"{scope.get('root_path', '')}{route.path}" if isinstance(route, Route) else "none"


def _broken(error: Exception) -> dict[str, Any]:
    """What failed and where, without its text."""
    return {"error": type(error).__name__, "at": traceback.format_tb(error.__traceback__)[-5:]}
