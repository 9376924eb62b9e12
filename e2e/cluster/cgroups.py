"""The cgroups below which a cluster's containers run, in each hierarchy that this machine has mounted.

They find every process of a container, also after containerd and its shims were killed.
"""

import contextlib
import os
import signal
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
    for hierarchy in _hierarchies():
        top = hierarchy / name
        wait_for(f"the cgroup {top} is gone", lambda top=top: _is_gone(top), seconds=10)  # type: ignore[misc]


def _is_gone(top: Path) -> bool:
    """Kills and removes what there is now; more may come of what forks meanwhile, or ends slowly."""
    for folder, _, _ in os.walk(top, topdown=False):
        for pid in (Path(folder) / "cgroup.procs").read_text().split():
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):  # a process is not quite gone
            os.rmdir(folder)
    return not top.exists()


def _hierarchies() -> list[Path]:
    mounts = (line.split() for line in _MOUNTS.read_text().splitlines())
    return [Path(point) for _, point, kind, *_ in mounts if kind in ("cgroup", "cgroup2")]


def _delegate(folder: Path) -> None:
    controllers = (folder / "cgroup.controllers").read_text().split()
    (folder / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in controllers))
