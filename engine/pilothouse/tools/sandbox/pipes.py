"""The ends of a command's pipes that the server holds, read and written without blocking."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable

from pilothouse.tools.sandbox.protocol import CHUNK

_AFTER_END = 1024 * 1024
"""Bytes read after the command's end: as much as a pipe can hold."""


class OutputPipe:
    """Yields what comes, until end of file, or until `finish` was called and nothing is left to read."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._finished = False
        self._wake: Callable[[], None] = _nothing

    async def chunks(self) -> AsyncIterator[bytes]:
        left = _AFTER_END
        while left > 0:
            try:
                chunk = os.read(self._fd, CHUNK)
            except BlockingIOError:
                if self._finished:
                    return
                await self._readable()
                continue
            if not chunk:
                return
            yield chunk
            left -= len(chunk) if self._finished else 0

    def finish(self) -> None:
        """No writer that counts is left: a process that still holds the pipe open is not waited for."""
        self._finished = True
        self._wake()

    async def _readable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = loop.create_future()
        self._wake = _setter(ready)
        loop.add_reader(self._fd, self._wake)
        try:
            await ready
        finally:
            loop.remove_reader(self._fd)


async def write_all(fd: int, data: bytes) -> None:
    """Write to a non-blocking descriptor; raises BrokenPipeError when nobody reads."""
    loop = asyncio.get_running_loop()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            ready = loop.create_future()
            loop.add_writer(fd, _setter(ready))
            try:
                await ready
            finally:
                loop.remove_writer(fd)


def _setter(future: "asyncio.Future[None]") -> Callable[[], None]:
    def wake() -> None:
        if not future.done():
            future.set_result(None)

    return wake


def _nothing() -> None:
    return None
