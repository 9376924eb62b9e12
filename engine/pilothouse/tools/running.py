"""A function while it runs as a tool: in a task or in a thread, with its updates, until it ends or is given up."""

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from pilothouse.tools.tool import ToolInvocation, ToolResult

GRACE = 5.0
"""Seconds that a function has to end after it was cancelled."""


class ToolContext:
    """What a function may ask for by a parameter of this type. It can be used from any thread."""

    def __init__(self, call_id: str, send: Callable[[str], None]) -> None:
        self.call_id = call_id
        """The model's id of the call: the same when a call is made again after its outcome was lost."""
        self._send = send
        self._cancelled = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Whether the call was cancelled. A function that looks at this in its loops can end in time; an async one is
        cancelled as any task is."""
        return self._cancelled.is_set()

    def update(self, text: str) -> None:
        """Tells subscribers how far the call is. Updates arrive in order, and before the result."""
        self._send(text)


class Running:
    """One call of a function. Cancelling `run` cancels the function and waits for its end, GRACE seconds at most."""

    def __init__(self, call: ToolInvocation) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_update = call.on_update
        self._updates: asyncio.Queue[str | None] = asyncio.Queue()
        self.context = ToolContext(call.id, self._send)
        self.value: Any = None

    async def __aenter__(self) -> Self:
        self._teller = asyncio.create_task(self._tell())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Waits until what was told has been heard."""
        self._updates.put_nowait(None)
        await self._teller

    async def run(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> bool:
        """Whether it ended, with `value`; False if it was cancelled and goes on all the same. Raises what it raises."""
        work = self._begin(function, arguments)
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            self.context._cancelled.set()
            work.cancel()
            await asyncio.wait({work}, timeout=GRACE)
            if not work.done():
                work.add_done_callback(_seen)
                return False
        self.value = work.result()
        return True

    def _begin(self, function: Callable[..., Any], arguments: Mapping[str, Any]) -> "asyncio.Future[Any]":
        if inspect.iscoroutinefunction(function):
            return asyncio.create_task(function(**arguments))
        return _in_thread(self._loop, lambda: function(**arguments))

    def _send(self, text: str) -> None:
        self._loop.call_soon_threadsafe(self._updates.put_nowait, text)

    async def _tell(self) -> None:
        while (text := await self._updates.get()) is not None:
            await self._on_update(ToolResult.of(text))


class _ThreadWork(asyncio.Future[Any]):
    """A thread cannot be cancelled: only the function itself can end it."""

    def cancel(self, msg: object = None) -> bool:
        return False


def _in_thread(loop: asyncio.AbstractEventLoop, work: Callable[[], Any]) -> "asyncio.Future[Any]":
    """Runs the work in a thread that the process's end does not wait for, unlike those of an executor."""
    ended = _ThreadWork(loop=loop)
    context = contextvars.copy_context()

    def run() -> None:
        try:
            value = context.run(work)
        except BaseException as error:
            settle = partial(ended.set_exception, _ordinary(error))
        else:
            settle = partial(ended.set_result, value)
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle)

    threading.Thread(target=run, daemon=True, name="pilothouse-tool").start()
    return ended


def _ordinary(error: BaseException) -> Exception:
    """What a future can hold: sys.exit() in a tool ends the tool alone."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    return RuntimeError(repr(error))


def _seen(work: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more, so nobody is to be warned of what it raised."""
    if not work.cancelled():
        work.exception()
