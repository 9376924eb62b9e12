"""What a piece of code may not have: a network, and more than its share of the machine."""

import os
import resource

from pilothouse.tools.sandbox.seal import seal

MEMORY = 512 * 1024 * 1024
"""Bytes of address space of each of its processes."""

PROCESSES = 10
"""Processes that it may have beside those that its user has already. The kernel sets root no such limit."""


def confine(own_user: bool = True) -> None:
    """Confines this process and all that it will start: no network, one processor, bounded memory and processes.

    The kernel counts processes by user, over all Pods of a node: where others run as the same user (`own_user` false),
    it is the Pod that bounds them. Raises SealUnavailable where the network cannot be taken away.
    """
    seal()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if own_user:
        most = _processes_of_user() + PROCESSES
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[os.getpid() % len(processors)]})


def _processes_of_user() -> int:
    """Threads count as well, as the kernel counts them."""
    user = os.getuid()
    return sum(_threads(pid, user) for pid in os.listdir("/proc") if pid.isdecimal())


def _threads(pid: str, user: int) -> int:
    try:
        return len(os.listdir(f"/proc/{pid}/task")) if os.stat(f"/proc/{pid}").st_uid == user else 0
    except OSError:
        return 0
