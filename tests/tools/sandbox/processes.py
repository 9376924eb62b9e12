"""What the tests look up about processes, from outside of the sandbox."""

import asyncio
from pathlib import Path

from pilothouse.tools.sandbox.client import Sandbox


def alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def peak_memory(pid: int) -> int:
    """Bytes of memory that the process has had at most at one time."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


async def server_of(sandbox: Sandbox) -> int:
    """The server's process id: it is the parent of a command's keeper, which is the command's parent."""
    return int((await sandbox.run("sed 's/.*) //' /proc/$PPID/stat | cut -d' ' -f2", timeout=10)).stdout)


async def until_gone(*pids: int) -> None:
    """Wait for the end of all; the test's own time limit fails it if they live on."""
    while any(alive(pid) for pid in pids):  # noqa: ASYNC110 (no event tells of another's process)
        await asyncio.sleep(0.01)


async def until_exists(path: Path) -> str:
    """Wait for a file with something in it."""
    while not path.exists() or not (text := path.read_text()):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.01)
    return text
