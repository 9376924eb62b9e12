"""Worker processes and the pool of them, seen from the side that asks."""

import asyncio
import json
import os
import signal
import sys
from typing import Any, Self

from pilothouse.workflows.expressions.errors import ExpressionLimit
from pilothouse.workflows.expressions.frames import CPU_LIMIT, LENGTH_BYTES, MEMORY_EXIT, MEMORY_LIMIT

WALL_LIMIT = 2.0
"""Seconds on the clock after which a worker that has not answered is killed."""

_START_LIMIT = 30.0
"""Seconds within which a new worker must be ready."""

_COMMAND = (sys.executable, "-I", "-m", "pilothouse.workflows.expressions.worker")


class WorkerDied(Exception):  # noqa: N818 - an event that the pool handles
    """A worker ended without an answer and without having reached a limit."""


class Worker:
    """One worker process; it takes one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Self:
        """Start a worker with an empty environment and wait until it is ready.

        Raises RuntimeError if it does not start, which means that the installation is broken.
        """
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *_COMMAND,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
            cwd=os.sep,
            start_new_session=True,  # a Ctrl-C in the terminal is for us, not for it
        )
        worker = cls(process)
        try:
            async with asyncio.timeout(_START_LIMIT):
                await worker._receive()
        except (asyncio.IncompleteReadError, TimeoutError):
            await worker.kill()
            raise RuntimeError(f"the expression worker does not start; see `{' '.join(_COMMAND)}`") from None
        except BaseException:
            await worker.kill()
            raise
        return worker

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def ask(self, request: bytes) -> Any:
        """Send a request and return the reply. After any exception the worker must be killed.

        Raises ExpressionLimit if the worker ended at a limit, WorkerDied if it ended otherwise.
        """
        try:
            async with asyncio.timeout(WALL_LIMIT):
                await self._send(request)
                return await self._receive()
        except TimeoutError:
            raise ExpressionLimit(f"the expression had no result after {WALL_LIMIT:g} s") from None
        except (asyncio.IncompleteReadError, OSError):
            raise _verdict(await self._process.wait()) from None

    async def kill(self) -> None:
        """End the process and wait for its end."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        if self.alive:
            self._process.kill()
        await self._process.wait()

    async def _send(self, body: bytes) -> None:
        assert self._process.stdin is not None  # noqa: S101 - it was started with pipes
        self._process.stdin.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
        await self._process.stdin.drain()

    async def _receive(self) -> Any:
        assert self._process.stdout is not None  # noqa: S101
        length = await self._process.stdout.readexactly(LENGTH_BYTES)
        return json.loads(await self._process.stdout.readexactly(int.from_bytes(length, "big")))


class WorkerPool:
    """Up to `size` workers, started when first needed and replaced when they end."""

    def __init__(self, size: int) -> None:
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Worker] = []
        self._ending: set[asyncio.Task[None]] = set()

    async def ask(self, request: bytes) -> Any:
        """The reply to a request. A request whose worker dies for no reason of its own is sent once more.

        Raises ExpressionLimit.
        """
        async with self._slots:
            try:
                return await self._ask(await self._take(), request)
            except WorkerDied:
                pass
            try:
                return await self._ask(await Worker.start(), request)
            except WorkerDied as died:
                raise ExpressionLimit(f"the expression ended its worker process twice ({died})") from None

    async def close(self) -> None:
        """End all workers; none may be working."""
        for worker in self._idle:
            self._end(worker)
        self._idle.clear()
        await asyncio.gather(*self._ending)

    async def _take(self) -> Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            self._end(worker)
        return await Worker.start()

    async def _ask(self, worker: Worker, request: bytes) -> Any:
        try:
            reply = await worker.ask(request)
        except BaseException:
            self._end(worker)
            raise
        self._idle.append(worker)
        return reply

    def _end(self, worker: Worker) -> None:
        # In a task of its own: whoever asked may have been cancelled and must not wait.
        task = asyncio.create_task(worker.kill())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _verdict(status: int) -> Exception:
    if status == -signal.SIGPROF:
        return ExpressionLimit(f"the expression took more than {CPU_LIMIT * 1000:g} ms of processor time")
    if status == MEMORY_EXIT:
        return ExpressionLimit(f"the expression took more than {MEMORY_LIMIT // 2**20} MiB of memory")
    return WorkerDied(f"status {status}")
