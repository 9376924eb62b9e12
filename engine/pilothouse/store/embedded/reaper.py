"""The process that stops the server once its last user is gone. Run as a script, it needs no package."""

import asyncio
import fcntl
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pilothouse.store.embedded.cluster import Cluster


_MAY_I_USE_TLS = bytes.fromhex("0000000804d2162f")
"""PostgreSQL's SSLRequest: the question that a server answers with one byte, whatever its state."""

_PATIENCE = 5.0


async def spawn_reaper(cluster: "Cluster") -> None:
    """Starts the reaper, detached: it outlives this process and its terminal."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        __file__,
        str(cluster.users),
        str(cluster.socket),
        *cluster.owner.as_arguments(),
        *cluster.stop_command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )
    await process.wait()


def answers(server: str) -> bool:
    """Whether a server answers at this socket. A connection alone proves nothing: the kernel still accepts
    some for a server that was killed this moment."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.settimeout(_PATIENCE)
            probe.connect(server)
            probe.sendall(_MAY_I_USE_TLS)
            return probe.recv(1) != b""
    except OSError:
        return False


def reap(users: str, server: str, uid: int, gid: int, stop_command: list[str]) -> None:
    """Waits until nobody holds the users' lock, then stops the server, if one answers."""
    handle = os.open(users, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    if not answers(server):
        return
    identity = {"user": uid, "group": gid, "extra_groups": []} if os.geteuid() == 0 else {}
    subprocess.run(stop_command, check=False, cwd="/", **identity)  # type: ignore[call-overload]  # noqa: S603


if __name__ == "__main__":
    if os.fork() == 0:
        reap(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
