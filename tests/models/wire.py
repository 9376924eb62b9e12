"""A raw HTTP server whose answers are byte for byte what a test says, and helpers to read a provider."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from pilothouse.agents.messages import UserMessage
from pilothouse.models.provider import Done, Failed, ModelEvent, ModelProvider, ModelRequest

DONE = b"data: [DONE]\n\n"


class Hold:
    """The server says no more and keeps the connection until the client leaves."""


class Drip:
    """The server sends a comment every hundredth of a second until the client leaves."""


Step = bytes | Hold | Drip


def sse(*chunks: dict[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def call_delta(index: int | None, arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments} | {k: v for k, v in fields.items() if k == "name"}
    call = {"function": function} | {k: v for k, v in fields.items() if k != "name"}
    return delta(tool_calls=[call if index is None else {"index": index, **call}])


def answer(text: str = "hello") -> bytes:
    return sse(delta(role="assistant", content=""), delta(content=text), delta(finish="stop")) + DONE


@dataclass
class Reply:
    """One HTTP response; each step is one chunk of the body. With `cut`, the connection ends without the last."""

    steps: Sequence[Step]
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "text/event-stream"})
    cut: bool = False


@dataclass
class Seen:
    head: str
    body: dict[str, Any]


class RawServer:
    """Gives the replies in order, the last one again and again."""

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = list(replies)
        self.seen: list[Seen] = []
        self.left: asyncio.Event = asyncio.Event()
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.seen.append(await _request(reader))
            reply = self._replies[min(len(self.seen), len(self._replies)) - 1]
            await _write(reply, reader, writer)
        except ConnectionError:
            pass
        finally:
            self.left.set()
            writer.close()


@asynccontextmanager
async def raw_server(*replies: Reply) -> AsyncIterator[RawServer]:
    raw = RawServer(replies)
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
    async with server:
        raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        yield raw


async def _request(reader: asyncio.StreamReader) -> Seen:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(line.split(":")[1] for line in head.splitlines() if line.lower().startswith("content-length"))
    return Seen(head, json.loads(await reader.readexactly(int(length))))


async def _write(reply: Reply, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    headers = "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
    head = f"HTTP/1.1 {reply.status} X\r\n{headers}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    writer.write(head.encode())
    for step in reply.steps:
        await _step(step, reader, writer)
    if not reply.cut:
        writer.write(b"0\r\n\r\n")
    await writer.drain()


async def _step(step: Step, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    if isinstance(step, bytes):
        writer.write(f"{len(step):x}\r\n".encode() + step + b"\r\n")
        await writer.drain()
    elif isinstance(step, Hold):
        await reader.read()
    else:
        while not reader.at_eof():
            await _step(b": still here\n", reader, writer)
            await asyncio.wait([asyncio.ensure_future(reader.read(1))], timeout=0.01)


class Naps:
    """Stands in for sleeping, and remembers for how long."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def request(text: str = "hi", **fields: Any) -> ModelRequest:
    return ModelRequest(system="Be brief.", messages=[UserMessage.of(text, timestamp=1)], **fields)


async def collect(provider: ModelProvider, asked: ModelRequest | None = None) -> list[ModelEvent]:
    return [event async for event in provider.stream(asked or request())]


def types(events: Sequence[ModelEvent]) -> list[str]:
    return [event.type for event in events]


def done(events: Sequence[ModelEvent]) -> Done:
    last = events[-1]
    assert isinstance(last, Done), last
    return last


def failed(events: Sequence[ModelEvent]) -> Failed:
    last = events[-1]
    assert isinstance(last, Failed), last
    return last
