"""The HTTP server of the gateway: TLS, and an end that lets finish what is under way."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from pilothouse.gateway.certificate import Renewal

_GRACE = 20
"""Seconds that requests under way have to end in, once the server is to stop."""

_KEEP_ALIVE = 75
"""Seconds after which an idle connection is closed: more than our client keeps one, so it never uses one that ends."""

_FAREWELL = 2.0
"""Seconds that a client has to take leave in TLS: one that is busy elsewhere does not hold up the end."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where to listen, and with which certificate. An empty host means all addresses."""

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
    Raises OSError where the port cannot be had, or the certificate or its key cannot be used."""
    renewal, config = Renewal(listen.certificate, listen.key), config_of(app, listen)
    config.load()
    assert config.ssl is not None  # noqa: S101 - it has a certificate
    server = _Server(config)
    listening = await asyncio.get_running_loop().create_server(
        server.connection, listen.host, listen.port, ssl=config.ssl, ssl_shutdown_timeout=_FAREWELL
    )
    server.servers = [listening]
    task = asyncio.create_task(server.serve(), name="pilothouse-gateway")
    renewing = asyncio.create_task(renewal.watch(config.ssl), name="pilothouse-certificate")
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        renewing.cancel()
        server.should_exit = True
        await task


class _Server(uvicorn.Server):
    """uvicorn's server on a socket that is there already."""

    def connection(self) -> asyncio.Protocol:
        return H11Protocol(self.config, self.server_state, app_state={})

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self.started = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the process's, which has more to close than this server."""
        yield
