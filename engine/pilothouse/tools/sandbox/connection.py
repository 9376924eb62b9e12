"""The agent's end of the connection: frames out, frames in to the exchange they belong to."""

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Self

from pilothouse.tools.sandbox.errors import ProtocolError, SandboxError, SandboxLost
from pilothouse.tools.sandbox.exchanges import Exchange
from pilothouse.tools.sandbox.protocol import VERSION, Frame, check_version, encode, read_frame

HELLO_LIMIT = 20.0
"""Seconds within which a sandbox that has connected must say `hello`."""


class Connection:
    """Ends at the first broken frame, or when the sandbox is gone: every open exchange then fails alike."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: Frame) -> None:
        self.sealed = hello.get("sealed", bool)
        self.reason = hello.get("reason", str)
        self._reader = reader
        self._writer = writer
        self._exchanges: dict[int, Exchange] = {}
        self._last_id = 0
        self._over: SandboxError | None = None
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def open(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Self:
        """Exchange the first frames; raises `ProtocolError` if the sandbox speaks another version."""
        try:
            async with asyncio.timeout(HELLO_LIMIT):
                hello = await read_frame(reader)
            if hello is None:
                raise SandboxLost("the sandbox ended before its `hello`")
            check_version(hello)
            connection = cls(reader, writer, hello)
        except BaseException as error:
            writer.transport.abort()
            if isinstance(error, TimeoutError):
                raise SandboxLost(f"the sandbox sent no `hello` within {HELLO_LIMIT:g} s") from error
            raise
        writer.write(encode(Frame(0, "hello", {"protocol": VERSION})))
        return connection

    def check(self) -> None:
        """Raise what ended the connection, if it has ended."""
        if self._over is not None:
            raise self._over

    async def ended(self) -> None:
        """Wait for the connection's end."""
        await asyncio.wait({self._listener})

    def begin(self, exchange: Exchange, kind: str, fields: Mapping[str, object]) -> int:
        """Send a request; returns its id, to be given to `finish`."""
        self.check()
        number = self._last_id + 1
        self._writer.write(encode(Frame(number, kind, dict(fields))))
        self._last_id = number
        self._exchanges[number] = exchange
        return number

    async def send(self, number: int, kind: str, payload: bytes = b"") -> None:
        """Send a further frame of a request. A sandbox that is lost is told by the exchange, not here."""
        self._writer.write(encode(Frame(number, kind, {}, payload)))
        with contextlib.suppress(ConnectionError):
            await self._writer.drain()

    def finish(self, number: int) -> None:
        self._exchanges.pop(number, None)

    def fail(self, error: SandboxError) -> None:
        """End the connection for this reason, unless it has ended already."""
        if self._over is None:
            self._over = error
            self._writer.transport.abort()
        for exchange in self._exchanges.values():
            exchange.fail(self._over)

    async def close(self) -> None:
        self.fail(SandboxLost("the sandbox was closed"))
        self._listener.cancel()
        await asyncio.gather(self._listener, return_exceptions=True)

    async def _listen(self) -> None:
        try:
            while (frame := await read_frame(self._reader)) is not None:
                self._dispatch(frame)
        except ProtocolError as error:
            self.fail(error)
        finally:
            self.fail(SandboxLost("the sandbox has gone away"))

    def _dispatch(self, frame: Frame) -> None:
        if (exchange := self._exchanges.get(frame.id)) is not None:
            exchange.feed(frame)
        elif frame.id == 0 and frame.kind == "error":
            raise ProtocolError(f"the sandbox closed the connection: {frame.get('message', str)}")
        elif not 0 < frame.id <= self._last_id:  # A late frame of a request that was given up is no offence.
            raise ProtocolError("the sandbox answered a request that was never made")
