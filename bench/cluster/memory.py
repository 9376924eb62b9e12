"""Resident memory of a Pod's processes, as the kernel tells it inside the container."""

import re
from dataclasses import dataclass

from e2e.cluster.clients import Kubectl

_READ = 'for each in /proc/[0-9]*; do [ "$each" = "/proc/$$" ] || cat "$each/status"; done'
"""The shell leaves itself out, and each `cat` begins after the list was made."""

_LINE = re.compile(r"^(VmRSS|VmHWM):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True)
class Memory:
    """MiB, summed over processes: a page that several share counts for each. `peak` is the most since they started."""

    now: float
    peak: float


def resident(kubectl: Kubectl, pod: str) -> Memory:
    """The memory of the processes of a Pod's one container."""
    return parse(kubectl("exec", pod, "--", "sh", "-c", _READ))


def parse(status: str) -> Memory:
    """The sum over what /proc/PID/status says of several processes."""
    kib = {"VmRSS": 0, "VmHWM": 0}
    for field, value in _LINE.findall(status):
        kib[field] += int(value)
    assert kib["VmRSS"] > 0, f"no process has memory of its own in {status!r}"
    return Memory(kib["VmRSS"] / 1024, kib["VmHWM"] / 1024)
