"""A little forward proxy that does what proxies do: forwards requests for http, opens tunnels for https."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from urllib.parse import urlsplit


class Proxy:
    """`asked` holds the request lines that it was given. Every name leads to the loopback address."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.url = ""
        self._serving: set[asyncio.Task[None]] = set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._serving.add(asyncio.create_task(self._serve(reader, writer)))

    async def close(self) -> None:
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError), closing(writer):
            head = await reader.readuntil(b"\r\n\r\n")
            line = head.decode().splitlines()[0]
            self.asked.append(line)
            method, target, _ = line.split()
            if method == "CONNECT":
                await self._tunnel(target, reader, writer)
            else:
                await self._forward(target, head, reader, writer)

    async def _tunnel(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", int(target.rpartition(":")[2]))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await _both_ways(reader, writer, far_reader, far_writer)

    async def _forward(
        self, target: str, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        url = urlsplit(target)
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", url.port or 80)
        far_writer.write(head.replace(target.encode(), url.path.encode(), 1))
        await _both_ways(reader, writer, far_reader, far_writer)


@asynccontextmanager
async def forward_proxy() -> AsyncIterator[Proxy]:
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    async with server:
        proxy.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield proxy
        finally:
            await proxy.close()


async def _both_ways(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    far_reader: asyncio.StreamReader,
    far_writer: asyncio.StreamWriter,
) -> None:
    to = asyncio.create_task(_copy(reader, far_writer))
    try:
        with closing(far_writer):
            await _copy(far_reader, writer)
    finally:
        to.cancel()
        await asyncio.gather(to, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
