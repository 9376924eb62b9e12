"""What a native cluster needs of this machine beyond Go: Linux, root, and Debian's packages, which are installed."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from e2e.cluster.commands import run, say
from e2e.cluster.errors import ClusterError

# What is run or read, and the Debian package that has it.
CLUSTER = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "sysctl": "procps",
    "openssl": "openssl",
}
IMAGE = {
    "buildah": "buildah",
    "debootstrap": "debootstrap",
}

_SYSTEM_FOLDERS = "/usr/sbin:/sbin:/usr/local/sbin"


def require(*needs: dict[str, str]) -> None:
    """Installs what is missing; raises ClusterError with the remedy where that is not possible."""
    if sys.platform != "linux" or os.geteuid() != 0:
        raise ClusterError(
            "a native cluster needs Linux and root, and there is no container engine with kind to make one without: "
            "start Docker or Podman and install kind, or run this as root"
        )
    os.environ["PATH"] += f":{_SYSTEM_FOLDERS}"
    if packages := missing(needs):
        _install(packages)
    if packages := missing(needs):
        raise ClusterError(f"installed, and yet not found on PATH: {' '.join(packages)}")


def missing(needs: Iterable[dict[str, str]], present: Callable[[str], bool] | None = None) -> list[str]:
    """The Debian packages whose program or file is not there."""
    there = present or _present
    return sorted({package for need in needs for item, package in need.items() if not there(item)})


def _present(item: str) -> bool:
    return Path(item).exists() if item.startswith("/") else shutil.which(item) is not None


def _install(packages: list[str]) -> None:
    if shutil.which("apt-get") is None:
        raise ClusterError(f"this machine lacks what Debian calls: {' '.join(packages)}; install them, then try again")
    say(f"installing the Debian packages: {' '.join(packages)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run("apt-get", "update", env=environment, timeout=300)
    run("apt-get", "install", "-y", "--no-install-recommends", *packages, env=environment, timeout=900)
