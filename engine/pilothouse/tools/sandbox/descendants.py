"""All that a process has started, also what left its group or its session: adopted, found and ended.

Only what loads fast is imported: the entry point of command steps uses this before each command.
"""

import contextlib
import ctypes
import os
import signal
import time

REAP_LIMIT = 5.0
"""Seconds spent on killing what a command left behind, in case something forks faster than it can be killed."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make every orphaned descendant of this process its child (a subreaper). Children do not inherit this."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that started it ends, however it does."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def reap(seconds: float) -> None:
    """Kill all below this process and wait for their end.

    Only children are killed: their numbers cannot be reused before we have waited for them, and what they leave
    becomes our child in turn (`adopt_orphans`).
    """
    deadline = time.monotonic() + seconds
    with contextlib.suppress(ChildProcessError):
        while time.monotonic() < deadline:
            if os.waitpid(-1, os.WNOHANG) == (0, 0):
                _kill_children()
                time.sleep(0.001)


def _kill_children() -> None:
    with open("/proc/thread-self/children", encoding="ascii") as children:
        for child in children.read().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
