"""A PostgreSQL server of one's own, for work without a cluster.

The server belongs to its directory, not to a process: whoever needs it first starts it, and it stops when
nobody needs it any more. Who needs it is known by a lock that each user holds on a file (`users.lock`), which
the kernel takes back also from a process that was killed. A small process beside the server waits for that
lock to be free and then stops the server, so that a killed user leaves none behind. A server that ends under its
users is started again by one of them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pilothouse.store.embedded.cluster import Cluster
from pilothouse.store.embedded.locks import exclusive, shared, sole
from pilothouse.store.embedded.owner import Owner
from pilothouse.store.embedded.reaper import spawn_reaper
from pilothouse.store.embedded.upkeep import kept_up


@asynccontextmanager
async def embedded_server(directory: Path) -> AsyncIterator[str]:
    """Yields the DSN of the server whose data lies below `directory`, started where it is not running, and again
    where it ends before its users do; the DSN stays the same.

    Raises StoreUnusable where the server cannot be had or its directory must not be used; the message
    says what to do. As root, the server runs as the user `pgserver`.
    """
    cluster = Cluster.at(directory, await Owner.find())
    try:
        async with shared(cluster.users):
            async with exclusive(cluster.gate):
                if not await cluster.is_running():
                    await spawn_reaper(cluster)
                    await cluster.start()
            async with kept_up(cluster):
                yield cluster.dsn
    finally:
        await _leave(cluster)


async def _leave(cluster: Cluster) -> None:
    """Stops the server if nobody else uses it; returns once it is down, whoever stops it."""
    with sole(cluster.users) as nobody_else:
        if nobody_else:
            await cluster.stop()
    async with shared(cluster.users):
        pass  # had at once beside other users, and otherwise once the reaper is done
