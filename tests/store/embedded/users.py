"""Users of a server in other processes, and what a user sees of the server."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from pathlib import Path

import psycopg

from pilothouse.store.embedded.cluster import Cluster

_USER = """
import asyncio, sys
from pathlib import Path
from pilothouse.store.embedded import embedded_server

async def use():
    async with embedded_server(Path(sys.argv[1])) as dsn:
        print(dsn, flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(use())
"""


async def user(directory: Path) -> Process:
    """Another process that uses the server, and does so by now."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", _USER, str(directory)), stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    assert process.stdout is not None
    assert (await process.stdout.readline()).startswith(b"postgresql://")
    return process


async def leave(process: Process) -> str:
    """Lets the user leave, and returns what it told on its standard error."""
    _, told = await process.communicate(b"")
    assert process.returncode == 0
    return told.decode()


async def started_at(dsn: str) -> object:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        row = await (await connection.execute("SELECT pg_postmaster_start_time()")).fetchone()
        assert row is not None
        return row[0]


async def started_after(dsn: str, before: object) -> object:
    """When the server started that runs now, as soon as it is another than the one of `before`."""
    async with asyncio.timeout(30):
        while True:
            try:
                now = await started_at(dsn)
            except psycopg.OperationalError:
                now = before
            if now != before:
                return now
            await asyncio.sleep(0.05)


def kill_server(cluster: Cluster) -> None:
    os.kill(int((cluster.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
