"""An HTTP transport behind the domain gate: it connects only to addresses that the gate has just let pass."""

from collections.abc import AsyncIterator

import httpx2

from pilothouse.governance.domains import DomainGate, Resolve
from pilothouse.governance.urls import Address, Destination

CONNECT_LIMIT = 10.0
"""Seconds for each address of a host."""


class GatedTransport(httpx2.AsyncBaseTransport):
    """Sends each request to an address that was looked up, judged and then pinned: the name is not looked up again. TLS
    still asks for the certificate of the name. `max_bytes` caps the body of an answer; beyond it reading raises
    httpx2.ReadError. Proxies of the environment are not used: behind one, the addresses would be the proxy's to choose.

    `session` is for a client that speaks to one host and caps events by itself: then connections are kept, which two
    names with one address must not share, and event streams have no end.

    Raises DomainRefused, and what httpx2 raises.
    """

    def __init__(
        self, gate: DomainGate, max_bytes: int, resolve: Resolve | None = None, *, session: bool = False
    ) -> None:
        limits = httpx2.Limits(max_keepalive_connections=4 if session else 0)
        self._session = session
        self._inner = httpx2.AsyncHTTPTransport(limits=limits)
        self._gate = gate
        self._max_bytes = max_bytes
        self._resolve = resolve

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        found = self._gate.check(str(request.url))
        try:
            addresses = await self._gate.addresses(found, self._resolve)
        except OSError as error:
            raise httpx2.ConnectError(f"`{found.host}` was not found: {error}", request=request) from None
        response = await self._first(request, found, addresses)
        if self._session and response.headers.get("content-type", "").startswith("text/event-stream"):
            return response
        stream = _Capped(response, self._max_bytes)
        return httpx2.Response(
            response.status_code, headers=response.headers, stream=stream, extensions=response.extensions
        )

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _first(
        self, request: httpx2.Request, found: Destination, addresses: tuple[Address, ...]
    ) -> httpx2.Response:
        """The answer of the first address that can be connected to."""
        failed: Exception | None = None
        for address in addresses:
            try:
                return await self._inner.handle_async_request(_pinned(request, found, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failed = error
        raise failed or httpx2.ConnectError(f"`{found.host}` has no address")


def _pinned(request: httpx2.Request, found: Destination, address: Address) -> httpx2.Request:
    host = f"[{address}]" if address.version == 6 else str(address)
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"host"]
    return httpx2.Request(
        request.method,
        f"{found.scheme}://{host}:{found.port}{found.target}",
        headers=[(b"Host", found.authority.encode()), *headers],
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": found.host},
    )


class _Capped(httpx2.AsyncByteStream):
    """The body of a response, up to a number of bytes."""

    def __init__(self, response: httpx2.Response, limit: int) -> None:
        self._response = response
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        assert isinstance(self._response.stream, httpx2.AsyncByteStream)  # noqa: S101 - for the type checker
        async for chunk in self._response.stream:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError(f"the answer is larger than {self._limit:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()
