"""The agent's door: a path socket that lets in whom it expects."""

import asyncio
import os
import secrets
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

_CREDENTIALS = struct.Struct("3i")  # struct ucred


@dataclass(frozen=True, slots=True)
class Peer:
    """Who is at the other end of a connection, as the kernel says. The process is 0 if it cannot be seen from here,
    as that of another container."""

    process: int
    user: int
    group: int


def listen(path: str, mode: int, group: int | None = None) -> socket.socket:
    """A socket that listens on the path, for those whom its mode and its group (ours if None) let connect.

    It gets the path's name last, in place of anything that has it: so whoever finds it can connect.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    hidden = f"{path}.{secrets.token_hex(4)}"
    try:
        listener.setblocking(False)
        listener.bind(hidden)
        os.chmod(hidden, mode)
        if group is not None:
            os.chown(hidden, -1, group)
        listener.listen(1)
        os.rename(hidden, path)
    except BaseException:
        listener.close()
        raise
    return listener


async def admit(listener: socket.socket, expected: Callable[[Peer], bool]) -> socket.socket:
    """The first connection of an expected peer; any other is closed."""
    while True:
        connection, _ = await asyncio.get_running_loop().sock_accept(listener)
        if expected(_peer(connection)):
            return connection
        connection.close()


def _peer(connection: socket.socket) -> Peer:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return Peer(*_CREDENTIALS.unpack(credentials))
