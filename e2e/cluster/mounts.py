"""What containers leave on this machine outside the cluster's folders, or mounted in them."""

import re
from collections.abc import Iterable
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.configuration import pod_network
from e2e.cluster.layout import Layout

_MOUNTS = Path("/proc/self/mounts")
_CNI_RESULTS = Path("/var/lib/cni/results")
_LOG_LINKS = Path("/var/log/containers")


def remove(*folders: Path) -> None:
    """Unmounts all that is mounted in the folders or below, the last mounted first."""
    for point in reversed(points(_MOUNTS.read_text(), folders)):
        run("umount", "--lazy", point)


def points(mounts: str, folders: Iterable[Path]) -> list[Path]:
    """The mount points in the folders, in the order of a table of mounts as /proc/self/mounts shows it."""
    # The kernel writes blanks, tabs, newlines and backslashes as octal numbers.
    fields = (line.split()[1] for line in mounts.splitlines())
    paths = [Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)) for field in fields]
    return [path for path in paths if any(path.is_relative_to(folder) for folder in folders)]


def forget_pods(layout: Layout) -> None:
    """Removes what libcni noted of the cluster's Pods, and the kubelet's links to their logs."""
    network = pod_network(layout)["name"]
    for note in _CNI_RESULTS.glob(f"{network}-*-eth0"):
        pod = note.name.removeprefix(f"{network}-").removesuffix("-eth0")
        for each in _CNI_RESULTS.glob(f"*-{pod}-*"):
            each.unlink()
    for link in _LOG_LINKS.glob("*"):
        if link.is_symlink() and link.readlink().is_relative_to(layout.run):
            link.unlink()
