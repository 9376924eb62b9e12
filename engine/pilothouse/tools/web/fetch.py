"""The built-in `web_fetch` tool: the text behind a URL, fetched by the agent's own process behind the domain gate."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from pydantic import JsonValue

from pilothouse.governance.domains import DomainGate, Resolve
from pilothouse.governance.urls import MAX_URL, DomainRefused
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

if TYPE_CHECKING:
    import httpx2  # Imported where it is used: reading the names of the built-in tools must stay quick.

MAX_BYTES = 10 * 1024 * 1024
"""Bytes of an answer, at most."""
TIME_LIMIT = 60.0
"""Seconds for the whole, redirects included."""
MAX_REDIRECTS = 5

_TEXTS = ("text/", "application/json", "application/xml", "application/javascript", "application/yaml")
_HEADERS = {
    "Accept": "text/html, text/plain, text/markdown, application/json;q=0.9, */*;q=0.1",
    # Compressed answers are not asked for: a few bytes could unfold to gigabytes past the limit.
    "Accept-Encoding": "identity",
    "User-Agent": "pilothouse-web-fetch",
}


@dataclass(frozen=True, slots=True)
class _Page:
    url: str
    status: int
    media_type: str
    charset: str
    body: bytes


class WebFetch:
    """`web_fetch`: GETs an http(s) URL and shows its text. Every redirect passes the gate anew. An answer that is an
    error of the server, or no text, is an error result."""

    name = "web_fetch"
    description = "Fetches a web page or a text file by its URL. HTML is shown as text."
    parameters: Mapping[str, Any] = {
        "type": "object",
        "properties": {
            "url": {"type": "string", "minLength": 1, "maxLength": MAX_URL, "description": "An http or https URL."}
        },
        "required": ["url"],
        "additionalProperties": False,
    }
    idempotent = True
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, gate: DomainGate, resolve: Resolve | None = None) -> None:
        self._gate = gate
        self._resolve = resolve

    async def execute(self, call: ToolInvocation) -> ToolResult:
        import httpx2

        url = str(call.arguments["url"])
        try:
            async with asyncio.timeout(TIME_LIMIT):
                return await asyncio.to_thread(_shown, await self._follow(url))
        except DomainRefused as error:
            return _refused("DomainRefused", f"Not fetched: {error}.")
        except TimeoutError:
            return _refused("TimedOut", f"The answer was not complete within {TIME_LIMIT:g} seconds.")
        except httpx2.HTTPError as error:
            return _refused("FetchFailed", f"The page could not be fetched: {str(error) or type(error).__name__}.")

    async def _follow(self, url: str) -> _Page:
        for _ in range(MAX_REDIRECTS + 1):
            page = await self._get(str(self._gate.check(url)))
            if isinstance(page, _Page):
                return page
            url = urljoin(url, page)
        raise DomainRefused(f"it redirects more than {MAX_REDIRECTS} times")

    async def _get(self, url: str) -> _Page | str:
        """The page, or where it redirects to. Each has a client of its own, which takes no cookie along."""
        import httpx2

        from pilothouse.tools.web.gated import CONNECT_LIMIT, GatedTransport

        transport = GatedTransport(self._gate, MAX_BYTES, self._resolve)
        timeout = httpx2.Timeout(TIME_LIMIT, connect=CONNECT_LIMIT)
        async with (
            httpx2.AsyncClient(transport=transport, timeout=timeout, headers=_HEADERS) as client,
            client.stream("GET", url) as response,
        ):
            if response.is_redirect and (location := response.headers.get("location")):
                return str(location)
            return await _page(url, response)


async def _page(url: str, response: "httpx2.Response") -> _Page:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = b"".join([chunk async for chunk in response.aiter_raw()])
    return _Page(url, response.status_code, media_type, response.charset_encoding or "utf-8", body)


def _shown(page: _Page) -> ToolResult:
    details: JsonValue = {
        "url": page.url,
        "status": page.status,
        "mediaType": page.media_type,
        "size": len(page.body),
    }
    failed = not 200 <= page.status < 300
    if (text := _text(page)) is None:
        told = f"`{page.url}` is not text but {page.media_type or 'of no known type'}; it has {len(page.body):,} bytes"
        return ToolResult.of(told, {"error": "NotText", "url": page.url, "status": page.status}, is_error=True)
    return ToolResult.of(f"[HTTP status {page.status}]\n{text}" if failed else text, details, is_error=failed)


def _text(page: _Page) -> str | None:
    from pilothouse.tools.web.text import html_to_text

    is_text = page.media_type.startswith(_TEXTS) or page.media_type.endswith(("+json", "+xml")) or not page.body
    if not (is_text or not page.media_type) or b"\0" in page.body[:4096]:
        return None
    try:
        text = page.body.decode(page.charset, errors="replace")
    except LookupError:
        text = page.body.decode(errors="replace")
    return html_to_text(text) if page.media_type in ("text/html", "application/xhtml+xml") else text


def _refused(reason: str, text: str) -> ToolResult:
    return ToolResult.of(text, {"error": reason}, is_error=True)
