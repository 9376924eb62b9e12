"""The store of one attempt over HTTPS: what a Pod has instead of a database."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx

from pilothouse.store.remote.attempts import RemoteAttemptStore
from pilothouse.store.remote.connection import Connection
from pilothouse.store.remote.passes import Pass
from pilothouse.store.remote.wire import PATH

__all__ = ["TIMEOUTS", "RemoteAttemptStore", "http_client", "open_remote_store"]

TIMEOUTS = httpx.Timeout(60.0, connect=5.0)
"""Seconds. A gateway gives up on its room and its database within 50 s, so what is not answered after 60 s is carried
out or lost, and does not happen later."""

_LIMITS = httpx.Limits(max_connections=20, keepalive_expiry=30.0)


@asynccontextmanager
async def open_remote_store(url: str, token_file: Path, ca: str) -> AsyncIterator[RemoteAttemptStore]:
    """The store of the attempt that this Pod carries out. The gateway says which that is: it stands in `ref`.

    `url` is the gateway's, https only; `token_file` holds the Pod's projected token; `ca` is PEM text, and no other
    authority is trusted. Raises ValueError for another kind of URL or CA, StoreUnavailable, Superseded where the
    attempt is over, StoreUnusable where the Pod is not admitted.
    """
    async with http_client(url, ca) as http:
        held = Pass(http, token_file)
        await held.fetch()
        yield RemoteAttemptStore(Connection(http, held))


def http_client(url: str, ca: str) -> httpx.AsyncClient:
    """A client of the store API at that gateway. Raises ValueError as `open_remote_store` does."""
    if httpx.URL(url).scheme != "https":
        raise ValueError(f"the store's URL must begin with https://, not {url!r}: tokens travel there")
    return httpx.AsyncClient(
        base_url=url.rstrip("/") + PATH, verify=_trust(ca), timeout=TIMEOUTS, limits=_LIMITS, trust_env=False
    )


def _trust(ca: str) -> ssl.SSLContext:
    """A context that trusts that authority alone: none of the system's, not even where `ca` is empty."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"the store's CA is no certificate in PEM: {error}") from None
    return context
