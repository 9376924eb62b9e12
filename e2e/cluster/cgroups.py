"""The cgroups below which a cluster's containers run, in each hierarchy that this machine has mounted.

They find every process of a container, also after containerd and its shims were killed.
"""

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

from e2e.cluster.commands import wait_for

_MOUNTS = Path("/proc/self/mounts")


def make(name: str) -> None:
    """Makes the cgroup `name`, with all controllers that there are: the kubelet demands that it exists."""
    for hierarchy in _hierarchies():
        folder = hierarchy / name
        folder.mkdir(exist_ok=True)
        if (folder / "cgroup.controllers").exists():
            _delegate(hierarchy)
            _delegate(folder)


def remove(name: str) -> None:
    """Kills every process in the cgroup `name` and below, then removes them all."""
    for top in _tops(name):
        wait_for(f"the processes in {top} are gone", lambda top=top: not _killed(top), seconds=10)  # type: ignore[misc]
        for folder in _below(top):
            folder.rmdir()


def _killed(top: Path) -> list[int]:
    """Kills what is in the cgroup now, and returns what that was: a process may have forked meanwhile."""
    pids = [int(pid) for folder in _below(top) for pid in (folder / "cgroup.procs").read_text().split()]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pids


def _below(top: Path) -> Iterator[Path]:
    """Yields the cgroup and those below it, the deepest first."""
    for folder, _, _ in os.walk(top, topdown=False):
        yield Path(folder)


def _tops(name: str) -> list[Path]:
    return [hierarchy / name for hierarchy in _hierarchies() if (hierarchy / name).is_dir()]


def _hierarchies() -> list[Path]:
    mounts = (line.split() for line in _MOUNTS.read_text().splitlines())
    return [Path(point) for _, point, kind, *_ in mounts if kind in ("cgroup", "cgroup2")]


def _delegate(folder: Path) -> None:
    controllers = (folder / "cgroup.controllers").read_text().split()
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in controllers))
