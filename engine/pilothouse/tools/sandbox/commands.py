"""The `run` request: a command and its three streams."""

import asyncio
import contextlib
import io
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from pilothouse.tools.sandbox.errors import ProtocolError
from pilothouse.tools.sandbox.keeper import Command, Keeper
from pilothouse.tools.sandbox.pipes import OutputPipe, write_all
from pilothouse.tools.sandbox.protocol import MAX_TIMEOUT, Frame
from pilothouse.tools.sandbox.requests import Request
from pilothouse.tools.sandbox.workspace import Workspace

HANDED_ON = "PILOTHOUSE_TOOL_ENV"
"""A variable of the sandbox: the names of those that commands get besides their usual ones, separated by commas."""

_DEFAULT_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}


@dataclass(frozen=True, slots=True)
class _Running:
    """A started command with the server's ends of its pipes; without input there is no `stdin`."""

    keeper: Keeper
    stdin: io.FileIO | None
    stdout: OutputPipe
    stderr: OutputPipe


async def run(request: Request, workspace: Workspace) -> None:
    """Run the command; the last frame comes once it and everything that it started have ended."""
    with ExitStack() as ours:
        running = _start(request.frame, workspace, ours)
        request.cancel = running.keeper.stop
        async with _streaming(request, running):
            ending = await running.keeper.ending()
    await request.send("exit", {"code": ending.code, "signal": ending.signal, "timed_out": ending.timed_out})


def _start(frame: Frame, workspace: Workspace, ours: ExitStack) -> _Running:
    command = _command(frame, workspace)
    with ExitStack() as theirs:
        stdin, their_stdin = _input(ours, theirs, wanted=frame.get("stdin", bool))
        stdout, their_stdout = _output(ours, theirs)
        stderr, their_stderr = _output(ours, theirs)
        directory = theirs.enter_context(workspace.directory(frame.get("cwd", str)))
        keeper = Keeper.start(command, directory, (their_stdin, their_stdout, their_stderr))
    ours.callback(keeper.close)
    return _Running(keeper, stdin, stdout, stderr)


def _command(frame: Frame, workspace: Workspace) -> Command:
    argv, timeout = frame.texts("argv"), frame.get("timeout", float)
    if not argv or not 0 < timeout <= MAX_TIMEOUT:
        raise ProtocolError(f"a command needs an `argv` and a `timeout` of up to {MAX_TIMEOUT} seconds")
    own = {name: os.environ.get(name, default) for name, default in _DEFAULT_ENVIRONMENT.items()}
    own |= {name: os.environ[name] for name in os.environ.get(HANDED_ON, "").split(",") if name in os.environ}
    return Command(argv, {**own, "HOME": str(workspace.path), **frame.text_map("env")}, timeout)


def _input(ours: ExitStack, theirs: ExitStack, *, wanted: bool) -> tuple[io.FileIO | None, int]:
    if not wanted:
        return None, _closing(theirs, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    read, write = os.pipe()
    os.set_blocking(write, False)
    return ours.enter_context(io.FileIO(write, "wb")), _closing(theirs, read)


def _output(ours: ExitStack, theirs: ExitStack) -> tuple[OutputPipe, int]:
    read, write = os.pipe()
    return OutputPipe(_closing(ours, read)), _closing(theirs, write)


def _closing(stack: ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


@asynccontextmanager
async def _streaming(request: Request, running: _Running) -> AsyncIterator[None]:
    """Passes input and output on during the block; at its end, the output that was written before it."""
    feed = asyncio.create_task(_feed(request, running.stdin))
    pumps = asyncio.gather(_pump(request, "stdout", running.stdout), _pump(request, "stderr", running.stderr))
    try:
        yield
    finally:
        feed.cancel()
        running.stdout.finish()
        running.stderr.finish()
        await asyncio.gather(feed, return_exceptions=True)
        await pumps


async def _pump(request: Request, kind: str, pipe: OutputPipe) -> None:
    async for chunk in pipe.chunks():
        await request.send(kind, payload=chunk)


async def _feed(request: Request, stdin: io.FileIO | None) -> None:
    """Pass the input on, then close it; a command that has stopped reading gets no more, and that is no error."""
    if stdin is None:
        return
    async for chunk in request.body():
        with contextlib.suppress(BrokenPipeError):
            await write_all(stdin.fileno(), chunk)
    stdin.close()
