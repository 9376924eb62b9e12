"""kubectl, bound to one cluster: it never sees the user's own kubeconfig, nor writes into their home."""

import os
from pathlib import Path
from string import Template

from e2e.cluster import binaries
from e2e.cluster.commands import run, succeeds
from e2e.cluster.layout import Layout

_MANIFESTS = Path(__file__).parent / "manifests"


class Kubectl:
    """Runs kubectl against the cluster of a layout."""

    def __init__(self, layout: Layout) -> None:
        self._program = binaries.folder(layout) / "kubectl"
        self._environment = environment(layout)

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Returns kubectl's stdout; raises ClusterError with its message if it fails."""
        return run(self._program, *arguments, env=self._environment, stdin=stdin, timeout=timeout)

    def succeeds(self, *arguments: str) -> bool:
        """Tells whether kubectl ends with code 0."""
        return succeeds(self._program, *arguments, env=self._environment)


def environment(layout: Layout) -> dict[str, str]:
    """The environment in which kubectl, Helm and the tests speak to this cluster and to no other."""
    clients = layout.run / "clients"
    return {
        **os.environ,
        "PATH": f"{binaries.folder(layout)}:{os.environ['PATH']}",
        "KUBECONFIG": str(layout.kubeconfig),
        "KUBECACHEDIR": str(clients / "kubectl"),
        "HELM_CACHE_HOME": str(clients / "helm" / "cache"),
        "HELM_CONFIG_HOME": str(clients / "helm" / "config"),
        "HELM_DATA_HOME": str(clients / "helm" / "data"),
    }


def manifest(name: str, **values: str | Path) -> str:
    """A manifest of ours with its values filled in."""
    return Template((_MANIFESTS / f"{name}.yaml").read_text()).substitute(values)
