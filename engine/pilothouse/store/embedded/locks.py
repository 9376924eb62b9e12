"""Locks on files, which the kernel releases when their holder ends, however it ends."""

import asyncio
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

_PAUSE = 0.02
"""Seconds between two tries; a blocking wait would hold up the event loop."""


@asynccontextmanager
async def shared(file: Path) -> AsyncIterator[None]:
    """Held together with any number of others."""
    async with _held(file, fcntl.LOCK_SH):
        yield


@asynccontextmanager
async def exclusive(file: Path) -> AsyncIterator[None]:
    """Held by nobody else."""
    async with _held(file, fcntl.LOCK_EX):
        yield


@contextmanager
def sole(file: Path) -> Iterator[bool]:
    """Held exclusively if that is possible at once; says whether it is."""
    with _opened(file) as handle:
        yield _try(handle, fcntl.LOCK_EX)


@asynccontextmanager
async def _held(file: Path, kind: int) -> AsyncIterator[None]:
    with _opened(file) as handle:
        while not _try(handle, kind):  # noqa: ASYNC110 - the kernel tells no event loop of a free lock
            await asyncio.sleep(_PAUSE)
        yield


@contextmanager
def _opened(file: Path) -> Iterator[int]:
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def _try(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
