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

__all__ = ["RemoteAttemptStore", "open_remote_store"]

_TIMEOUTS = httpx.Timeout(60.0, connect=5.0)
"""Seconds. A gateway gives up on its database within 35 s, so what is not answered after 60 s is carried out or lost,
and does not happen later."""

_LIMITS = httpx.Limits(max_connections=20, keepalive_expiry=30.0)


@asynccontextmanager
async def open_remote_store(url: str, token_file: Path, ca: str) -> AsyncIterator[RemoteAttemptStore]:
    """The store of the attempt that this Pod carries out. The gateway says which that is: it stands in `ref`.

    `url` is the gateway's, https only; `token_file` holds the Pod's projected token; `ca` is PEM text, and no other
    authority is trusted. Raises ValueError for another kind of URL or CA, StoreUnavailable, Superseded where the
    attempt is over, StoreUnusable where the Pod is not admitted.
    """
    if httpx.URL(url).scheme != "https":
        raise ValueError(f"the store's URL must begin with https://, not {url!r}: tokens travel there")
    async with httpx.AsyncClient(
        base_url=url.rstrip("/") + PATH, verify=_trust(ca), timeout=_TIMEOUTS, limits=_LIMITS, trust_env=False
    ) as http:
        held = Pass(http, token_file)
        await held.fetch()
        yield RemoteAttemptStore(Connection(http, held))


def _trust(ca: str) -> ssl.SSLContext:
    """A context that trusts that authority alone: none of the system's, not even where `ca` is empty."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(cadata=ca)
    except (ssl.SSLError, ValueError) as error:
        raise ValueError(f"the store's CA is no certificate in PEM: {error}") from None
    return context
