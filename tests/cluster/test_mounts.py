"""Which mounts are a cluster's."""

from pathlib import Path

from e2e.cluster import mounts

TABLE = """/dev/vda / ext4 rw 0 0
tmpfs /cache/run/kubelet/pods/1/volumes/token tmpfs rw 0 0
overlay /run/t0-containerd/task/rootfs overlay rw 0 0
tmpfs /cache/run-t1/kubelet tmpfs rw 0 0
tmpfs /cache/run/a\\040folder\\134 tmpfs rw 0 0
"""


def test_only_those_within_its_folders_are_and_their_names_are_read_right() -> None:
    assert mounts.points(TABLE, [Path("/cache/run"), Path("/run/t0-containerd")]) == [
        Path("/cache/run/kubelet/pods/1/volumes/token"),
        Path("/run/t0-containerd/task/rootfs"),
        Path("/cache/run/a folder\\"),
    ]
