"""Where a cluster's things are: its folders, its addresses and its names, all derived from the cluster's own name.

Two clusters of different names share nothing but the compiled binaries and the built image.
"""

import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.errors import ClusterError

# The variable that names another cluster to the command line and to the tests.
NAME_VARIABLE = "PILOTHOUSE_E2E_CLUSTER"
DEFAULT_NAME = "ph"
CONTEXT = "pilothouse-e2e"

# Names become interfaces (at most 15 characters, two of them ours), a network namespace and a host name.
_NAME = re.compile(r"[a-z][a-z0-9]{0,9}")


def cache_folder() -> Path:
    """The folder of what is made once and kept; the same rule as in scripts/setup."""
    default = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pilothouse"
    return Path(os.environ.get("PILOTHOUSE_CACHE") or default).absolute()


@dataclass(frozen=True)
class Layout:
    """The names, addresses and folders of one cluster. `number` tells its subnets from those of other clusters."""

    name: str
    number: int
    cache: Path

    @classmethod
    def of(cls, name: str = DEFAULT_NAME, cache: Path | None = None) -> "Layout":
        """Derives the layout of the cluster `name`; raises ClusterError for a name that is none."""
        if not _NAME.fullmatch(name):
            raise ClusterError(f"the cluster name {name!r} must be 1 to 10 of a-z and 0-9, the first a letter")
        number = 0 if name == DEFAULT_NAME else 1 + zlib.crc32(name.encode()) % 250
        return cls(name, number, (cache or cache_folder()) / "cluster")

    @property
    def run(self) -> Path:
        """The folder of all that lives as long as the cluster."""
        return self.cache / ("run" if self.name == DEFAULT_NAME else f"run-{self.name}")

    @property
    def lock(self) -> Path:
        """The file that who makes or removes the cluster holds a lock on."""
        return self.run.with_suffix(".lock")

    @property
    def pki(self) -> Path:
        """The folder of keys and certificates."""
        return self.run / "pki"

    @property
    def logs(self) -> Path:
        """The folder of the components' logs; it outlives the cluster, until the next one is made."""
        return self.run / "log"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the cluster's administrator."""
        return self.run / "kubeconfig"

    @property
    def runtime(self) -> Path:
        """The folder of containerd's socket, network namespaces and mounts: sockets need a short path."""
        return Path("/run") / f"{self.name}-containerd"

    @property
    def socket(self) -> Path:
        """The socket of containerd."""
        return self.runtime / "containerd.sock"

    @property
    def namespace(self) -> Path:
        """The file by which the cluster's network namespace is entered."""
        return Path("/run/netns") / self.name

    @property
    def cgroup(self) -> str:
        """The cgroup above those of all Pods, the same in each hierarchy."""
        return f"pilothouse-{self.name}"

    @property
    def gateway(self) -> str:
        """The machine's end of the link to the cluster."""
        return f"10.210.{self.number}.1"

    @property
    def address(self) -> str:
        """The node's address, at the other end of the link."""
        return f"10.210.{self.number}.2"

    @property
    def server(self) -> str:
        """The API server's URL."""
        return f"https://{self.address}:6443"

    @property
    def services(self) -> str:
        """The range of Service addresses."""
        return f"10.211.{self.number}.0/24"

    @property
    def api_service(self) -> str:
        """The address of the Service `kubernetes`: the first of the range, by Kubernetes' own rule."""
        return f"10.211.{self.number}.1"

    @property
    def dns_service(self) -> str:
        """The address of the Service `kube-dns`."""
        return f"10.211.{self.number}.10"

    @property
    def pods(self) -> str:
        """The range of Pod addresses."""
        return f"10.212.{self.number}.0/24"
