"""The mounts in a folder: those of a cluster's Pods, and those that an interrupted build left behind."""

import re
from collections.abc import Iterable
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.errors import ClusterError

_MOUNTS = Path("/proc/self/mounts")


def remove(*folders: Path) -> None:
    """Unmounts all that is mounted in the folders or below, the last mounted first.

    Raises ClusterError if something cannot be unmounted. What goes meanwhile, with its container, is gone as well.
    """
    for point in reversed(points(_MOUNTS.read_text(), folders)):
        try:
            run("umount", "--lazy", point)
        except ClusterError:
            if point in points(_MOUNTS.read_text(), folders):
                raise


def points(mounts: str, folders: Iterable[Path]) -> list[Path]:
    """The mount points in the folders, in the order of a table of mounts as /proc/self/mounts shows it."""
    # The kernel writes blanks, tabs, newlines and backslashes as octal numbers.
    fields = (line.split()[1] for line in mounts.splitlines())
    paths = [Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)) for field in fields]
    return [path for path in paths if any(path.is_relative_to(folder) for folder in folders)]
