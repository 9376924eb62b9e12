"""A command: run to its exit status, its troubles told in one line."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from pilothouse.cli.printing import safe
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError

USAGE = 2
"""Exit status where the command itself could not be carried out."""

PAUSED = 130
"""Exit status of a command that was interrupted."""

PIPE_CLOSED = 141
"""Exit status of a command whose reader went away, as a shell gives it for SIGPIPE."""


class CommandError(Exception):
    """What a command could not do, in a sentence for the user."""


def tell(text: str) -> None:
    """A sentence for the user, beside the result."""
    print(safe(text), file=sys.stderr, flush=True)  # noqa: T201


def complete(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    """Runs a command to its exit status; what it could not do is told in one line. SIGTERM is as Ctrl-C."""
    try:
        return asyncio.run(_interruptible(command))
    except (CommandError, StoreError, ValueRefused) as error:
        tell(f"pilothouse: {error}")
        return USAGE
    except (KeyboardInterrupt, asyncio.CancelledError):
        return PAUSED
    except BrokenPipeError:
        _silence()
        return PIPE_CLOSED
    except OSError as error:
        tell(f"pilothouse: {error.filename or 'a file'} cannot be used: {error.strerror or error}")
        _silence()
        return USAGE


async def _interruptible(command: Callable[[], Coroutine[Any, Any, int]]) -> int:
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    return await command()


def _silence() -> None:
    """What is still to be written goes nowhere: the interpreter flushes once more as it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
