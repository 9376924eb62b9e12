"""An MCP server as a program in the sandbox: messages are lines of its standard input and output."""

import asyncio
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import SandboxError
from pilothouse.tools.sandbox.output import HeadAndTail
from pilothouse.tools.sandbox.protocol import MAX_TIMEOUT

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage

MAX_MESSAGE = 32 * 1024 * 1024
"""Bytes of one message of a server."""
MAX_WAITING = 10_000
"""Messages of a server that wait to be read."""
END_GRACE = 2.0
"""Seconds that a server has to end after its input was closed."""
_STDERR = 2_000


class ServerEnded(Exception):  # noqa: N818 - it says what happened
    """The program ended, or broke the protocol; the text says how, with the end of its standard error."""


class StdioTransport:
    """Starts the program, and ends it with the block. `ended` is set, and says why, as soon as the program is gone."""

    def __init__(self, sandbox: Sandbox, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.ended = ""
        self.unsent = False
        self.forgotten = False
        self._sandbox = sandbox
        self._command = command
        self._env = env
        self._line = bytearray()
        self._errors = HeadAndTail(_STDERR)

    @asynccontextmanager
    async def open(self) -> "AsyncIterator[TransportStreams]":
        import anyio
        from mcp.shared.message import SessionMessage

        self._received, read = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        write, sent = anyio.create_memory_object_stream[SessionMessage](0)
        program = asyncio.create_task(self._run(sent))
        try:
            yield read, write
        finally:
            await write.aclose()
            await asyncio.wait({program}, timeout=END_GRACE)
            program.cancel()
            await asyncio.gather(program, return_exceptions=True)
            for stream in (read, sent, self._received):
                stream.close()

    async def _run(self, sent: "MemoryObjectReceiveStream[SessionMessage]") -> None:
        try:
            end = await self._sandbox.run(
                self._command,
                timeout=MAX_TIMEOUT,
                env=self._env,
                stdin=_lines(sent),
                max_output=0,
                on_output=self._hear,
            )
            how = f"signal {end.signal}" if end.exit_code is None else f"exit code {end.exit_code}"
            self.ended = f"the program ended with {how}"
        except (SandboxError, ServerEnded) as error:
            self.ended = str(error)
        finally:
            self.ended = _with(self.ended or "the program was ended", self._errors.content())
            self._received.close()

    def _hear(self, stream: str, data: bytes) -> None:
        """Raises ServerEnded, which ends the program, for a message or a number of them beyond the limits."""
        if stream == "stderr":
            self._errors.add(data)
            return
        self._line += data
        if b"\n" in data:
            *lines, rest = self._line.split(b"\n")
            self._line = bytearray(rest)
            for line in lines:
                self._take(bytes(line))
        if len(self._line) > MAX_MESSAGE:
            raise ServerEnded(f"the program was ended, as it sent a message of more than {MAX_MESSAGE:,} bytes")

    def _take(self, line: bytes) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        if not line.strip():
            return
        if self._received.statistics().current_buffer_used >= MAX_WAITING:
            raise ServerEnded("the program was ended, as it sent messages faster than they could be read")
        try:
            message: SessionMessage | Exception = SessionMessage(jsonrpc_message_adapter.validate_json(line))
        except ValueError as error:  # Programs print what is no message by mistake; the protocol goes on.
            message = error
        self._received.send_nowait(message)

    _received: "MemoryObjectSendStream[SessionMessage | Exception]"


async def _lines(sent: "MemoryObjectReceiveStream[SessionMessage]") -> AsyncIterator[bytes]:
    async for message in sent:
        yield message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def _with(reason: str, errors: bytes) -> str:
    said = errors.decode(errors="replace").strip()
    return f"{reason}; it said: {said}" if said else reason
