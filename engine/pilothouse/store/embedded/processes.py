"""What the kernel tells of the server's process: which it is, and whether it has ended uncollected."""

import os
import select
import socket
import struct
import sys
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")
"""Linux's `struct ucred`: process, user, group."""


def process_behind(server: Path) -> int:
    """The process that listens at this socket. Raises OSError where the kernel does not tell it."""
    if sys.platform != "linux":
        raise OSError(f"{sys.platform} tells of no process behind a socket")
    with socket.socket(socket.AF_UNIX) as probe:
        probe.setblocking(False)
        probe.connect(str(server))
        credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    process: int = _CREDENTIALS.unpack(credentials)[0]
    return process


def forget_dead(file: Path) -> None:
    """Removes a lock file of PostgreSQL that names a process which has ended and which no parent collects, as in
    a container without an init: PostgreSQL takes such a process for a living one."""
    try:
        if _is_uncollected(int(file.read_text().split()[0])):
            file.unlink()
    except (OSError, ValueError, IndexError):
        pass  # no such file or process, or nothing that can be read: PostgreSQL judges that itself


def _is_uncollected(process: int) -> bool:
    if sys.platform != "linux":
        return False
    handle = os.pidfd_open(process)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(handle)
