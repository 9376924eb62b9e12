"""What a user of the server does while it uses it: starts it again when it ends, as after a `kill -9`.

Nobody stops a server that has users, so one that ended under its users was lost. Each of them notices; the gate
lets one of them start it, and PostgreSQL itself recovers what was committed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pilothouse.processes import end_of
from pilothouse.store.embedded.cluster import Cluster
from pilothouse.store.embedded.locks import exclusive
from pilothouse.store.embedded.processes import process_behind
from pilothouse.store.errors import StoreUnusable

_log = logging.getLogger(__name__)

_PAUSE = 1.0
"""Seconds between two starts, and between two looks where the system tells of no process's end."""


@asynccontextmanager
async def kept_up(cluster: Cluster) -> AsyncIterator[None]:
    """Inside, a server that ends is started again. To be entered and left while the users' lock is held."""
    keeping = asyncio.create_task(_keep(cluster), name="pilothouse-upkeep")
    try:
        yield
    finally:
        keeping.cancel()
        await asyncio.wait([keeping])  # a start that is under way ends first: its server is to be stopped, or used


async def bring_back(cluster: Cluster) -> bool:
    """Starts the server unless one runs, and says whether it did. Needs no reaper: that of the first start waits
    for all users. Raises StoreUnusable where it does not start, and OSError where its directory is gone."""
    async with exclusive(cluster.gate):
        if await cluster.is_running():
            return False
        await cluster.start_again()
        return True


async def _keep(cluster: Cluster) -> None:
    while True:
        await _until_gone(cluster)
        await _until_back(cluster)
        await asyncio.sleep(_PAUSE)


async def _until_gone(cluster: Cluster) -> None:
    with suppress(StoreUnusable):  # the start tells of it
        while await cluster.is_running():
            try:
                await end_of(process_behind(cluster.socket))
            except OSError:  # it ended this moment, or the kernel does not tell
                await asyncio.sleep(_PAUSE)


async def _until_back(cluster: Cluster) -> None:
    told = False
    while True:
        try:
            if await bring_back(cluster):
                _log.warning("the database server of %s had ended and was started again", cluster.directory)
            return
        except (StoreUnusable, OSError) as error:
            if not told:
                _log.warning("%s\nthis is tried again every %g s", error, _PAUSE)
            told = True
        await asyncio.sleep(_PAUSE)
