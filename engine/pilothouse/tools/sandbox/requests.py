"""One request as the server sees it: its first frame, the body that follows, the frames that answer it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

from pilothouse.tools.sandbox.errors import ProtocolError
from pilothouse.tools.sandbox.protocol import Frame

_NOTHING: Mapping[str, object] = {}


class Request:
    """`cancel` is what a `cancel` frame calls; the request still ends with its last frame."""

    def __init__(self, frame: Frame, send: Callable[[Frame], Awaitable[None]]) -> None:
        self.frame = frame
        self.cancel: Callable[[], object] = _ignore
        self._send = send
        self._body: asyncio.Queue[Frame] = asyncio.Queue(maxsize=1)

    async def send(self, kind: str, fields: Mapping[str, object] = _NOTHING, payload: bytes = b"") -> None:
        await self._send(Frame(self.frame.id, kind, dict(fields), payload))

    def take(self, frame: Frame) -> None:
        """A `data` or `end` frame has come; raises `ProtocolError` if it was not asked for by `more`."""
        try:
            self._body.put_nowait(frame)
        except asyncio.QueueFull:
            raise ProtocolError("the body of a request must wait for `more` before its next frame") from None

    async def body(self) -> AsyncIterator[bytes]:
        while (frame := await self._body.get()).kind != "end":
            yield frame.payload
            await self.send("more")


def _ignore() -> None:
    return None
