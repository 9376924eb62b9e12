"""A sandbox on this machine: the same server, as a process of this user."""

import asyncio
import os
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.door import admit, listen
from pilothouse.tools.sandbox.errors import SandboxLost, SealUnavailable

START_LIMIT = 20.0
"""Seconds within which the sandbox must have connected."""
STOP_LIMIT = 10.0
"""Seconds within which it must have ended after its connection was closed."""


@asynccontextmanager
async def local_sandbox(workspace: Path, *, require_seal: bool | None = None) -> AsyncIterator[Sandbox]:
    """Start a sandbox for the directory, which must exist; it ends with the block, or with this process.

    `require_seal`: True raises `SealUnavailable` where the kernel cannot seal it; None seals it where that is possible
    (`Sandbox.sealed` says so); False leaves it open to the network. It has no variable of this process's environment
    but PATH. Raises `SandboxLost` if it does not start.

    The seal keeps the network away; it does not keep a command from this user's other files and path sockets. In a Pod
    the sandbox is a container of its own, which does.
    """
    with tempfile.TemporaryFile() as log:
        process, sandbox = await _start(workspace, "off" if require_seal is False else "available", log)
        try:
            if require_seal and not sandbox.sealed:
                raise SealUnavailable(sandbox.not_sealed_reason)
            yield sandbox
        finally:
            await sandbox.close()
            await _stop(process)


async def _start(workspace: Path, seal: str, log: IO[bytes]) -> tuple[Process, Sandbox]:
    """Start the server and take the one connection that comes from it; nobody else can reach the socket."""
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as private, listen(f"{private}/agent", 0o600) as listener:
        process = await _spawn(workspace, f"{private}/agent", seal, log)
        try:
            connection = await _accept(listener, process)
            os.unlink(f"{private}/agent")
            reader, writer = await asyncio.open_unix_connection(sock=connection)
            return process, await Sandbox.open(reader, writer)
        except BaseException as error:
            await _kill(process)
            if isinstance(error, SandboxLost):
                raise _start_error(error, log) from None
            raise


async def _spawn(workspace: Path, path: str, seal: str, log: IO[bytes]) -> Process:
    server = ("-I", "-m", "pilothouse.tools.sandbox")
    options = ("--connect", path, "--workspace", str(workspace), "--seal", seal, "--wait", "0")
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *server,
        *options,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=log,
        env=environment,
        start_new_session=True,
    )


async def _accept(listener: socket.socket, process: Process) -> socket.socket:
    user = os.geteuid()
    accepting = asyncio.create_task(admit(listener, lambda peer: (peer.process, peer.user) == (process.pid, user)))
    ending = asyncio.create_task(process.wait())
    try:
        await asyncio.wait({accepting, ending}, timeout=START_LIMIT, return_when=asyncio.FIRST_COMPLETED)
        if accepting.done():
            return accepting.result()
        if ending.done():
            raise SandboxLost("the sandbox ended before it connected")
        raise SandboxLost(f"the sandbox did not connect within {START_LIMIT:g} s")
    finally:
        accepting.cancel()
        ending.cancel()


def _start_error(error: SandboxLost, log: IO[bytes]) -> SandboxLost:
    log.seek(0)
    said = log.read(4096).decode(errors="replace").strip()
    return SandboxLost(f"{error}: {said}" if said else str(error))


async def _stop(process: Process) -> None:
    try:
        async with asyncio.timeout(STOP_LIMIT):
            await process.wait()
    except TimeoutError:
        await _kill(process)


async def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
