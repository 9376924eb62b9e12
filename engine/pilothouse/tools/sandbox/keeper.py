"""A command and the small process that keeps it: a fork of the server, one for each command.

The keeper adopts every orphan below it, so it finds all that the command started, also what has left the process group
or the session. When the command ends, the time is over, the server says stop, or the server is gone (its end of the
control socket closes, however it died), the keeper kills them all, then reports. Its code is plain and blocking: after
a fork nothing may touch the server's event loop.
"""

import asyncio
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
from dataclasses import dataclass
from typing import NoReturn, Self

from pilothouse.tools.sandbox.descendants import REAP_LIMIT, adopt_orphans, reap
from pilothouse.tools.sandbox.errors import CommandRefused

TERM_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL, when a command's time is over or it is cancelled."""

_CONTROL = 3
_MAX_REPORT = 16 * 1024


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. `timeout` in seconds."""

    argv: list[str]
    env: dict[str, str]
    timeout: float


@dataclass(frozen=True, slots=True)
class Ending:
    """How a command ended: by itself with an exit code, or by a signal."""

    code: int | None
    signal: int | None
    timed_out: bool


class KeeperLost(Exception):  # noqa: N818 (it says what happened)
    """Someone killed a keeper: what its command left behind can no longer be told apart."""


class Keeper:
    """The server's handle of a keeper."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control

    @classmethod
    def start(cls, command: Command, directory: int, stdio: tuple[int, int, int]) -> Self:
        """Fork a keeper that runs the command in the directory with these descriptors as 0, 1 and 2."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if os.fork() == 0:
            _keep(command, directory, stdio, theirs.fileno())
        theirs.close()
        ours.setblocking(False)
        return cls(ours)

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._control.send(b"stop")

    async def ending(self) -> Ending:
        """Wait for the end; raises `CommandRefused` if the command did not start, `KeeperLost` without a report."""
        report = await asyncio.get_running_loop().sock_recv(self._control, _MAX_REPORT)
        if not report:
            raise KeeperLost
        fields = json.loads(report)
        if "refused" in fields:
            raise CommandRefused(fields["refused"])
        return Ending(fields["code"], fields["signal"], fields["timed_out"])

    def close(self) -> None:
        self._control.close()


def _keep(command: Command, directory: int, stdio: tuple[int, int, int], control: int) -> NoReturn:
    """The keeper's life. It never returns into the server's code."""
    try:
        gc.disable()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        os.fchdir(directory)
        for target, source in enumerate(stdio):
            os.dup2(source, target)
        os.dup2(control, _CONTROL, inheritable=False)
        os.closerange(_CONTROL + 1, os.sysconf("SC_OPEN_MAX"))
        adopt_orphans()
        os.write(_CONTROL, json.dumps(_run(command)).encode())
    finally:
        os._exit(0)


def _run(command: Command) -> dict[str, object]:
    try:
        process = subprocess.Popen(command.argv, env=command.env, start_new_session=True)  # noqa: S603 (our purpose)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        return {"refused": f"cannot start {command.argv[0]!r}: {_reason(error)}"[:1024]}
    end = os.pidfd_open(process.pid)
    timed_out = not _wait([_CONTROL, end], command.timeout)
    if not _wait([end], 0):
        _terminate(process, end)
    status = process.wait()
    reap(REAP_LIMIT)
    code, number = (status, None) if status >= 0 else (None, -status)
    return {"code": code, "signal": number, "timed_out": timed_out}


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _wait(descriptors: list[int], seconds: float) -> bool:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _terminate(process: "subprocess.Popen[bytes]", end: int) -> None:
    os.killpg(process.pid, signal.SIGTERM)
    if not _wait([end], TERM_GRACE):
        os.killpg(process.pid, signal.SIGKILL)
