"""The gateway on a real socket with real TLS, and the client's store on the other side of it.

uvicorn's own protocol serves, without its main loop, which ticks ten times a second: so each test has a server of its
own and ends at once.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pilothouse.gateway import tokens
from pilothouse.gateway.server import Listen, config_of
from pilothouse.gateway.tokens import Bearer
from pilothouse.records.runs import AttemptRef
from pilothouse.store.history import RunHistory
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.store.remote import http_client
from pilothouse.store.remote.attempts import RemoteAttemptStore
from pilothouse.store.remote.connection import Connection
from pilothouse.store.remote.passes import Pass
from tests.store.samples import BUILD

CERTIFICATES = Path(__file__).parent / "certificates"
CA = (CERTIFICATES / "ca.pem").read_text()
NO_HISTORY = cast(RunHistory, None)
"""For an application whose read API a test leaves alone."""

LISTEN = Listen(0, CERTIFICATES / "server.pem", CERTIFICATES / "server.key", host="127.0.0.1")


@asynccontextmanager
async def served(
    app: ASGIApp, state: ServerState | None = None, port: int = 0, clients: Path | None = None
) -> AsyncIterator[str]:
    """The URL at which the app answers. `state` is told of the connections; `clients` is the authority by which they
    must show a certificate."""
    config = config_of(app, LISTEN)
    config.load()
    if clients is not None:
        assert config.ssl is not None
        config.ssl.load_verify_locations(clients)
        config.ssl.verify_mode = ssl.CERT_REQUIRED
    state = state or ServerState()

    def protocol() -> asyncio.Protocol:
        return H11Protocol(config, state, app_state={})

    loop = asyncio.get_running_loop()
    server = await loop.create_server(protocol, LISTEN.host, port, ssl=config.ssl)
    try:
        yield f"https://{LISTEN.host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        cut(state)
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)


def cut(state: ServerState) -> None:
    """Ends every connection as a server that dies does: without another word."""
    for connection in list(state.connections):
        connection.transport.abort()


def http(url: str) -> httpx.AsyncClient:
    """A client of the store API that trusts the test's authority."""
    return http_client(url, CA)


class Minted(Pass):
    """A pass for any attempt that a test names, signed with the database's key as the gateway signs."""

    def __init__(self, store: RunStore, ref: AttemptRef) -> None:
        self._store = store
        self._ref = ref

    @property
    def ref(self) -> AttemptRef:
        return self._ref

    async def token(self) -> str:
        attempts = await self._store.attempts(self._ref.run)
        step = next((attempt.step for attempt in attempts if attempt.ref.attempt == self._ref.attempt), BUILD)
        return tokens.issue(await self._store.token_key(), Bearer(self._ref, step))


class StoreOverHTTP:
    """A store whose attempts speak to it through a gateway, as Pods do; everything else is the store itself."""

    def __init__(self, store: RunStore, client: httpx.AsyncClient) -> None:
        self._store = store
        self._client = client

    def attempt_store(self, ref: AttemptRef) -> AttemptStore:
        return RemoteAttemptStore(Connection(self._client, Minted(self._store, ref)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)
