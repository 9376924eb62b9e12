"""Answers, sent in pieces."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import aclosing
from typing import TypeAlias

from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

PIECE = 1024 * 1024
"""Bytes that are sent at a time."""

DEPARTURE = 30.0
"""Seconds within which a part must have left: who takes longer is cut off, for others may wait for its room."""

Parts: TypeAlias = AsyncGenerator[Iterator[bytes], None]
"""What is held at a time, each in the pieces in which it is sent."""

_ENCODER = json.JSONEncoder(ensure_ascii=True, allow_nan=False, separators=(",", ":"))


class Answer(Response):
    """Nothing between here and the client may keep it. Each piece waits until those before have left, so that of a
    large body neither the connection nor TLS holds copies."""

    def __init__(
        self, body: bytes, media_type: str, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(body, status, {"Cache-Control": "no-store", **(headers or {})}, media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _send(self, _whole(bytes(self.body)), send)


class LongAnswer(StreamingResponse):
    """An answer in parts, each made once those before it have left. What goes wrong after the first cuts it short,
    which the client sees."""

    def __init__(self, parts: Parts, media_type: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__((), 200, {"Cache-Control": "no-store", **(headers or {})}, media_type)
        self._parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await _send(self, self._parts, send)


async def _send(answer: Response, parts: Parts, send: Send) -> None:
    async with aclosing(parts):
        await send({"type": "http.response.start", "status": answer.status_code, "headers": answer.raw_headers})
        async for part in parts:
            async with asyncio.timeout(DEPARTURE):
                for piece in part:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _whole(body: bytes) -> Parts:
    yield (body[start : start + PIECE] for start in range(0, len(body), PIECE))


def pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """The texts in pieces that can be sent, without a copy of the whole."""
    held = bytearray()
    for text in texts:
        for start in range(0, len(text), PIECE):
            held += text[start : start + PIECE].encode()
            if len(held) >= PIECE:
                yield bytes(held)
                held.clear()
    if held:
        yield bytes(held)


def json_answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """In ASCII, so that every text of a record survives."""
    return Answer(_ENCODER.encode(body).encode(), "application/json", status, headers)
