"""An MCP server behind a URL (streamable HTTP), through the domain gate."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx2

from pilothouse.governance.domains import DomainGate, Resolve
from pilothouse.governance.urls import DomainRefused
from pilothouse.tools.mcp.stdio import MAX_MESSAGE
from pilothouse.tools.web.gated import CONNECT_LIMIT, GatedTransport

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

SILENCE = 300.0
"""Seconds of silence on a stream of the server's."""

Headers = Callable[[], Mapping[str, str]]


class HttpTransport:
    """Requests carry the headers that `headers` gives at that moment, so a rotated token is used from then on. They are
    sent to the URL's own host alone: the protocol's library follows a redirect only within it.

    `ended` is set, and says why, when a request could not be made at all, or when the server has forgotten the session,
    as one does that was started anew: then `unsent`, the request has not been carried out.
    """

    def __init__(self, url: str, headers: Headers, gate: DomainGate, resolve: Resolve | None = None) -> None:
        self.ended = ""
        self.unsent = False
        self.forgotten = False
        self._url = url
        self._headers = headers
        self._gate = gate
        self._resolve = resolve

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[TransportStreams]":
        from mcp.client.streamable_http import streamable_http_client

        self._gate.check(self._url)
        timeout = httpx2.Timeout(SILENCE, connect=CONNECT_LIMIT)
        transport = _Watched(GatedTransport(self._gate, MAX_MESSAGE, self._resolve, session=True), self)
        hooks = {"request": [self._add_headers]}
        async with (
            httpx2.AsyncClient(transport=transport, timeout=timeout, event_hooks=hooks) as client,
            streamable_http_client(self._url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
        ):
            yield streams

    async def _add_headers(self, request: httpx2.Request) -> None:
        request.headers.update(self._headers())
        request.headers["Accept-Encoding"] = "identity"  # A few compressed bytes could unfold past the limit.


class _Watched(httpx2.AsyncBaseTransport):
    def __init__(self, inner: GatedTransport, owner: HttpTransport) -> None:
        self._inner = inner
        self._owner = owner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            response = await self._inner.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, DomainRefused) as error:
            self._note(request, str(error) or type(error).__name__)
            raise
        if response.status_code == 404 and "mcp-session-id" in request.headers:
            self._note(request, "it does not know the session any more")
            self._owner.forgotten = True
        return response

    def _note(self, request: httpx2.Request, reason: str) -> None:
        if request.method == "POST":
            self._owner.ended, self._owner.unsent = reason, True

    async def aclose(self) -> None:
        await self._inner.aclose()
