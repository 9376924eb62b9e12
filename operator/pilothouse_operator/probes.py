"""Probes and metrics over HTTP. Liveness says that the loop turns; readiness that the operator could lead."""

import asyncio
from contextlib import suppress
from typing import Self

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pilothouse_operator.operator import Operator

PORT = 8080


class Probes:
    """Serves from the process's first moment, so that what it waits for can be read."""

    def __init__(self, port: int = PORT) -> None:
        self._subject: Operator | None = None
        self._waits_for = "the process is starting"
        config = uvicorn.Config(self._app(), host="0.0.0.0", port=port, log_config=None, access_log=False)  # noqa: S104
        self._server = uvicorn.Server(config)
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._server._serve())  # without its signal handlers: those are kopf's
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._server.should_exit = True
        if self._task is not None:
            with suppress(asyncio.CancelledError):
                await self._task

    def watch(self, subject: Operator) -> None:
        self._subject = subject
        self._waits_for = ""

    def wait_for(self, what: str) -> None:
        self._waits_for = what

    def _app(self) -> Starlette:
        routes = [
            Route("/livez", self._live),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
        ]
        return Starlette(routes=routes)

    async def _live(self, _: Request) -> Response:
        return PlainTextResponse("ok")

    async def _ready(self, _: Request) -> Response:
        if self._waits_for:
            return PlainTextResponse(f"waiting: {self._waits_for}", 503)
        return PlainTextResponse("ok" if self._subject and self._subject.leads else "ok, standing by")

    async def _metrics(self, _: Request) -> Response:
        text = self._subject.metrics.text() if self._subject else b""
        return Response(text, media_type="text/plain; version=0.0.4")
