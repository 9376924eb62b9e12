"""Waiting for the end of a process that is not a child. Linux has pidfds for that."""

import asyncio
import os


async def end_of(process: int) -> None:
    """Returns when it has ended. Raises OSError where there is none, or none to be seen from this container."""
    handle = os.pidfd_open(process)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
        os.close(handle)
