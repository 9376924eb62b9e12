"""A sandbox in a Pod: a container beside the agent's, which comes to the agent's door by itself.

The kubelet starts the container again when its process was killed; its workspace is a volume and stays. So the agent
opens the door anew whenever it has lost its sandbox, and the next one to come is its successor.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.door import admit, listen
from pilothouse.tools.sandbox.errors import SandboxError, SandboxLost, SealUnavailable

START_LIMIT = 120.0
"""Seconds within which the first sandbox must have come: both containers have the same image."""
RETURN_LIMIT = 400.0
"""Seconds within which a successor must have come: more than the kubelet's longest pause between two starts, 300."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where the agent of a Pod listens, and for whom: `user` may come in, `group` may knock."""

    path: str = "/run/pilothouse/sandbox/agent"
    user: int = 10002
    group: int = 10003


class PodSandbox:
    """Whichever sandbox is there now."""

    def __init__(self, door: Door, tell: Callable[[str], None]) -> None:
        self._door = door
        self._tell = tell
        self._trouble = ""
        self._arrival: asyncio.Future[Sandbox] = asyncio.get_running_loop().create_future()

    async def current(self, limit: float = RETURN_LIMIT) -> Sandbox:
        """The sandbox, which can be used at this moment; waits for one that is on its way.

        Raises SandboxLost if none comes within `limit` seconds, SealUnavailable if it is not sealed, and OSError where
        the door cannot be opened.
        """
        try:
            async with asyncio.timeout(limit):
                while True:
                    sandbox = await asyncio.shield(self._arrival)
                    try:
                        return await sandbox.current()
                    except SandboxError:
                        await asyncio.sleep(0)  # Its end was seen here before it was in `attend`.
        except TimeoutError:
            reason = f"no sandbox came within {limit:g} s{self._trouble}; the log of its container says more"
            raise SandboxLost(reason) from None

    async def attend(self) -> None:
        """Lets in one sandbox after the other, for ever; what prevents that is raised by `current`."""
        try:
            while True:
                sandbox = await self._next()
                self._arrival.set_result(sandbox)
                await sandbox.ended()
                self._arrival = asyncio.get_running_loop().create_future()
                self._tell("the sandbox has gone away; its next start is waited for")
        except (OSError, SandboxError) as error:
            self._arrival.set_exception(error)
            self._arrival.exception()  # Marks it as seen: perhaps no tool asks for a sandbox any more.

    async def close(self) -> None:
        if self._arrival.done() and not self._arrival.exception():
            await self._arrival.result().close()

    async def _next(self) -> Sandbox:
        while True:
            reader, writer = await asyncio.open_unix_connection(sock=await self._knock())
            try:
                sandbox = await Sandbox.open(reader, writer)
            except SandboxError as error:
                self._trouble = f" (the last one: {error})"
                continue
            if sandbox.sealed:
                return sandbox
            await sandbox.close()
            raise SealUnavailable(f"the sandbox came unsealed: {sandbox.not_sealed_reason}")

    async def _knock(self) -> socket.socket:
        """The door is there until the first expected peer has come, so nothing that a tool starts finds it."""
        door = self._door
        with listen(door.path, 0o660, door.group) as listener:
            try:
                return await admit(listener, lambda peer: peer.user == door.user)
            finally:
                os.unlink(door.path)


@asynccontextmanager
async def pod_sandbox(door: Door, tell: Callable[[str], None], limit: float = START_LIMIT) -> AsyncIterator[PodSandbox]:
    """Opens the door and waits for the first sandbox; at the end of the block the sandbox ends.

    Raises as `PodSandbox.current` does. `tell` hears of a sandbox that went away.
    """
    sandbox = PodSandbox(door, tell)
    attending = asyncio.create_task(sandbox.attend())
    try:
        await sandbox.current(limit)
        yield sandbox
    finally:
        attending.cancel()
        await asyncio.gather(attending, return_exceptions=True)
        await sandbox.close()
