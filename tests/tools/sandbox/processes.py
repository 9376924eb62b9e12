"""What the tests look up about processes, from outside of the sandbox."""

import asyncio
from collections.abc import Callable
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


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def catches(pid: int, number: int) -> bool:
    """Whether the process has a handler for the signal."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in lines if line.startswith("SigCgt:"))
    return bool(caught >> (number - 1) & 1)


async def until(condition: Callable[[], object]) -> None:
    """Wait for what no event tells of; the test's own time limit fails it if that never is."""
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def until_gone(*pids: int) -> None:
    """Wait for the end of all."""
    await until(lambda: not any(map(alive, pids)))


async def until_exists(path: Path) -> str:
    """Wait for a file with something in it."""
    while not path.exists() or not (text := path.read_text()):  # noqa: ASYNC110, ASYNC240
        await asyncio.sleep(0.01)
    return text
