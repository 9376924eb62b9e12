"""Lines from standard input, which do not keep the process from doing, or being asked to do, something else."""

import asyncio
import os
import threading
from collections.abc import AsyncIterator

_PIECE = 65_536


class Keyboard:
    """Reads in a thread of its own: a terminal, a pipe and a file alike. The thread ends with the process."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, daemon=True).start()

    async def line(self) -> str | None:
        """The next one without its end; None after the last."""
        return await self._lines.get()

    def end(self) -> None:
        """There is no next line any more, for whoever waits for one."""
        self._lines.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self.line()) is not None:
            yield line

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._descriptor, _PIECE):
            *lines, rest = (rest + data).split(b"\n")
            self._give(lines)
        self._give([rest] if rest else [])
        self._put(None)

    def _give(self, lines: list[bytes]) -> None:
        for line in lines:
            self._put(line.decode(errors="replace").rstrip("\r"))

    def _put(self, line: str | None) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
