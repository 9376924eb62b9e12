"""A small web server in the tests' own process, that answers what a test tells it to."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Site:
    """`pages` by path; `requests` are the heads of those that came."""

    port: int = 0
    pages: dict[str, bytes | Answer] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def page(self, path: str, body: bytes | str, media_type: str = "text/plain", status: int = 200) -> None:
        content = body.encode() if isinstance(body, str) else body
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {media_type}\r\nContent-Length: {len(content)}\r\n\r\n"
        self.pages[path] = head.encode() + content

    def redirect(self, path: str, location: str) -> None:
        self.pages[path] = f"HTTP/1.1 302 X\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            answer = self.pages.get(head.split(" ")[1], b"HTTP/1.1 404 X\r\nContent-Length: 4\r\n\r\ngone")
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def running(tls: ssl.SSLContext | None = None) -> AsyncIterator[Site]:
    site = Site()
    server = await asyncio.start_server(site.serve, "127.0.0.1", 0, ssl=tls)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
