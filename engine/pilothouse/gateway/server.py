"""The HTTP server of the gateway: TLS, and an end that lets finish what is under way."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp

_GRACE = 20
"""Seconds that requests under way have to end in, once the server is to stop."""

_KEEP_ALIVE = 75
"""Seconds after which an idle connection is closed: more than our client keeps one, so it never uses one that ends."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, and with which certificate. Port 0 takes a free one; an empty host means all addresses."""

    port: int
    certificate: Path
    key: Path
    host: str = ""


def config_of(app: ASGIApp, listen: Listen) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=listen.host,
        port=listen.port,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=_GRACE,
    )


@asynccontextmanager
async def serving(app: ASGIApp, listen: Listen) -> AsyncIterator[int]:
    """Serves within the context, and gives the port. At its end nothing new is taken, and what is under way ends.
    Raises OSError where the certificate or its key cannot be used."""
    config = config_of(app, listen)
    config.load()
    server = _Server(config)
    task = asyncio.create_task(server.serve(), name="pilothouse-gateway")
    try:
        await server.ready.wait()
        yield server.port
    finally:
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    @property
    def port(self) -> int:
        return int(self.servers[0].sockets[0].getsockname()[1])

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's, which has more to close than this server."""
        yield
