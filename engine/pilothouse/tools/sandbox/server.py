"""The sandbox's process: connects to its agent, seals itself, then runs what the agent asks until the agent is gone.

    python -I -m pilothouse.tools.sandbox --connect PATH --workspace DIR [--seal required|available|off]
                                                 [--wait SECONDS]

The agent listens on the path, or will within SECONDS (600). The connection is the sandbox's life: when it ends, every
process below is killed. So does SIGTERM end it. Exit status 0 after either, 1 (and why, on standard error) where it
could not serve at all.
"""

import argparse
import asyncio
import os
import signal
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

from pilothouse.tools.sandbox import commands, files
from pilothouse.tools.sandbox.descendants import REAP_LIMIT, reap
from pilothouse.tools.sandbox.errors import OperationFailed, ProtocolError, RequestError, SealUnavailable
from pilothouse.tools.sandbox.hardening import harden
from pilothouse.tools.sandbox.protocol import VERSION, Frame, check_version, encode, read_frame
from pilothouse.tools.sandbox.requests import Request
from pilothouse.tools.sandbox.scope import confine
from pilothouse.tools.sandbox.seal import seal
from pilothouse.tools.sandbox.workspace import Workspace

_LOOK = 0.05  # Seconds between two looks for the agent.
_MAX_MESSAGE = 2048  # Characters; a message may quote what was asked for.

_HANDLERS: dict[str, Callable[[Request, Workspace], Awaitable[None]]] = {
    "run": commands.run,
    "put": files.put,
    "get": files.get,
    "remove": files.remove,
    "find": files.found,
    "snapshot": files.snapshot,
    "restore": files.restore,
}


class Server:
    """Serves one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, workspace: Workspace) -> None:
        self._reader = reader
        self._writer = writer
        self._workspace = workspace
        self._requests: dict[int, Request] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._last_id = 0

    async def serve(self, not_sealed: str | None) -> None:
        """Say hello, then serve until the connection ends or the agent breaks the protocol."""
        hello = {"protocol": VERSION, "sealed": not_sealed is None, "reason": not_sealed or ""}
        try:
            await self._send(Frame(0, "hello", hello))
            if (first := await read_frame(self._reader)) is None:
                return
            check_version(first)
            while (frame := await read_frame(self._reader)) is not None:
                self._take(frame)
        except ProtocolError as error:
            await self._send(Frame(0, "error", {"code": "ProtocolError", "message": str(error)}))

    async def _send(self, frame: Frame) -> None:
        self._writer.write(encode(frame))
        await self._writer.drain()

    def _take(self, frame: Frame) -> None:
        request = self._requests.get(frame.id)
        if frame.kind in _HANDLERS:
            self._begin(frame)
        elif frame.kind not in ("data", "end", "cancel"):
            raise ProtocolError(f"there is no request `{frame.kind}` in version {VERSION}")
        elif request is None:
            return  # It ended while the frame was under way.
        elif frame.kind == "cancel":
            request.cancel()
        else:
            request.take(frame)

    def _begin(self, frame: Frame) -> None:
        if frame.id <= self._last_id:
            raise ProtocolError("every request needs a higher `id` than the one before")
        self._last_id = frame.id
        request = self._requests[frame.id] = Request(frame, self._send)
        task = asyncio.create_task(self._answer(request))
        request.cancel = task.cancel
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._ended(request, ended))

    async def _answer(self, request: Request) -> None:
        try:
            await _HANDLERS[request.frame.kind](request, self._workspace)
        except RequestError as error:
            await request.send("error", {"code": type(error).__name__, "message": str(error)[:_MAX_MESSAGE]})
        except OSError as error:
            await request.send("error", {"code": OperationFailed.__name__, "message": str(error)[:_MAX_MESSAGE]})

    def _ended(self, request: Request, task: asyncio.Task[None]) -> None:
        """A request that was cancelled is answered; one that failed for no known reason ends the sandbox."""
        self._tasks.discard(task)
        del self._requests[request.frame.id]
        if task.cancelled():
            cancelled = Frame(request.frame.id, "error", {"code": OperationFailed.__name__, "message": "cancelled"})
            self._writer.write(encode(cancelled))
        elif (error := task.exception()) is not None and not isinstance(error, ConnectionError):
            traceback.print_exception(error, file=sys.stderr)
            self._writer.transport.abort()


def main() -> NoReturn:
    """From here on SIGTERM also awaits the end of all below."""
    signal.signal(signal.SIGTERM, lambda *_: _end(0))
    arguments = _parse(sys.argv[1:])
    status = 1
    try:
        asyncio.run(_main(arguments))
        status = 0
    except (OSError, SealUnavailable) as error:
        sys.stderr.write(f"sandbox: {error}\n")
    finally:
        _end(status)


def _end(status: int) -> NoReturn:
    """End at once, with all below: if this is a container's first process, the kernel kills the others."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reap(0 if os.getpid() == 1 else REAP_LIMIT)
    os._exit(status)


def _parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="pilothouse.tools.sandbox")
    parser.add_argument("--connect", required=True, metavar="PATH", help="the socket on which the agent listens")
    parser.add_argument("--workspace", required=True, type=Path, metavar="DIR")
    parser.add_argument("--seal", choices=("required", "available", "off"), default="required")
    parser.add_argument(
        "--wait", type=float, default=600, metavar="SECONDS", help="how long the agent may take to listen"
    )
    return parser.parse_args(argv)


async def _main(arguments: argparse.Namespace) -> None:
    workspace = Workspace(arguments.workspace)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Keepers report over their socket; nobody waits for them.
    harden()
    confine()
    not_sealed = _seal(arguments.seal)
    reader, writer = await _connect(arguments.connect, arguments.wait)
    await Server(reader, writer, workspace).serve(not_sealed)


async def _connect(path: str, limit: float) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """The agent at the path, once it listens; a path that an agent which died has left behind is none yet."""
    deadline = time.monotonic() + limit
    while True:
        try:
            return await asyncio.open_unix_connection(path)
        except (FileNotFoundError, ConnectionRefusedError) as error:
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no agent listened on {path} within {limit:g} s: {error.strerror}") from error
        await asyncio.sleep(_LOOK)


def _seal(wanted: str) -> str | None:
    """Why this process is not sealed; None if it is."""
    if wanted == "off":
        return "not asked to seal itself"
    try:
        seal()
    except SealUnavailable as error:
        if wanted == "required":
            raise
        return str(error)
    return None
