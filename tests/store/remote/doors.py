"""A gateway that a test makes say what it wants, in place of the real one's routes."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.gateway.serving import served

IDS = {"tenant": str(UUID(int=1)), "run": str(UUID(int=2)), "attempt": str(UUID(int=3)), "fence": 4}

Answer = Callable[[Request], Awaitable[Response] | Response]


@dataclass
class Door:
    """What it was asked, as (path, bearer), and what it answers by path, or by bearer to those that it refuses. A path
    without answers gets a 200."""

    url: str = ""
    asked: list[tuple[str, str]] = field(default_factory=list)
    answers: dict[str, list[Response]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    given: int = 0
    attempt: dict[str, Any] = field(default_factory=lambda: dict(IDS))

    async def serve(self, request: Request) -> Response:
        path = request.path_params["method"]
        bearer = request.headers["Authorization"].removeprefix("Bearer ")
        self.asked.append((path, bearer))
        if bearer in self.refused:
            return problem(401, "Unauthenticated")
        if script := self.answers.get(path):
            return script.pop(0)
        return self._admit() if path == "token" else JSONResponse({"digest": "sha256:1", "size": 1})

    def of(self, path: str) -> list[str]:
        """The bearers that came to that path."""
        return [token for asked, token in self.asked if asked == path]

    def _admit(self) -> Response:
        self.given += 1
        return JSONResponse({"token": f"attempt-{self.given}", "expires_in": 600, "attempt": self.attempt})


@asynccontextmanager
async def door() -> AsyncIterator[Door]:
    door = Door()
    app = Starlette(routes=[Route("/store/v1/{method}", door.serve, methods=["POST"])])
    async with served(app) as door.url:
        yield door


def problem(status: int, kind: str = "", message: str = "no", **headers: str) -> Response:
    return JSONResponse({"type": kind, "message": message} if kind else None, status, headers)
