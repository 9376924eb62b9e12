"""Abort: cancelling the loop's task. Nothing that the loop waits for can keep that to itself."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(slots=True)
class Signal:
    """Tells those who are not cancelled with the loop, as its listeners are not, that it was aborted."""

    aborted: bool = False


def cancellations() -> int:
    """How often this task was asked to end; a CancelledError without a request is somebody's own doing."""
    task = asyncio.current_task()
    return task.cancelling() if task else 0


async def heeded(work: Awaitable[T]) -> T:
    """What the work gives. Raises CancelledError where the task was cancelled meanwhile and the work went on."""
    before = cancellations()
    result = await work
    if cancellations() > before:
        raise asyncio.CancelledError("a hook kept the cancellation to itself")
    return result
