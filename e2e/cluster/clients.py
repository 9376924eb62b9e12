"""kubectl and Helm, bound to one cluster: they never see the user's own settings, nor write into their home."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from e2e.cluster import binaries
from e2e.cluster.commands import run, succeeds
from e2e.cluster.layout import Layout

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Kubectl:
    """Runs kubectl against the cluster of a layout, in a namespace of it if one is given."""

    layout: Layout
    namespace: str | None = None

    def within(self, namespace: str) -> "Kubectl":
        """The same, in that namespace."""
        return replace(self, namespace=namespace)

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> str:
        """Returns kubectl's stdout; raises ClusterError with its message if it fails, or after `timeout` seconds."""
        return run(*self._words(arguments), env=environment(self.layout), stdin=stdin, timeout=timeout)

    def succeeds(self, *arguments: str) -> bool:
        """Tells whether kubectl ends with code 0."""
        return succeeds(*self._words(arguments), env=environment(self.layout))

    def get(self, *arguments: str) -> dict[str, Any]:
        """The object or the list that `kubectl get` gives."""
        got: dict[str, Any] = json.loads(self("get", *arguments, "--output=json"))
        return got

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """The objects of the list that `kubectl get` gives."""
        listed: list[dict[str, Any]] = self.get(*arguments)["items"]
        return listed

    def apply(self, *manifests: Manifest | str, server_side: bool = False) -> str:
        """Applies objects, or YAML texts of them, and returns what became of each."""
        how = ("--server-side",) if server_side else ()
        return self("apply", *how, "--filename=-", stdin=_text(manifests))

    def wait(self, condition: str, *targets: str, seconds: int = 60) -> None:
        """Waits for a condition as `kubectl wait --for` takes it; raises ClusterError if it does not come about."""
        self("wait", f"--for={condition}", *targets, f"--timeout={seconds}s", timeout=seconds + 15)

    def _words(self, arguments: Iterable[str]) -> tuple[str, ...]:
        where = (f"--namespace={self.namespace}",) if self.namespace else ()
        return (str(binaries.folder(self.layout) / "kubectl"), *where, *arguments)


@dataclass(frozen=True)
class Helm:
    """Runs Helm against the cluster of a layout."""

    layout: Layout

    def __call__(self, *arguments: str, stdin: str | None = None, timeout: float = 300) -> str:
        """Returns Helm's stdout; raises ClusterError with its message if it fails, or after `timeout` seconds."""
        program = binaries.folder(self.layout) / "helm"
        return run(program, *arguments, env=environment(self.layout), stdin=stdin, timeout=timeout)


def environment(layout: Layout) -> dict[str, str]:
    """The environment in which kubectl, Helm and the tests speak to this cluster and to no other."""
    own = layout.run / "clients"
    return {
        **os.environ,
        "PATH": f"{binaries.folder(layout)}:{os.environ['PATH']}",
        "KUBECONFIG": str(layout.kubeconfig),
        "KUBECACHEDIR": str(own / "kubectl"),
        "HELM_CACHE_HOME": str(own / "helm" / "cache"),
        "HELM_CONFIG_HOME": str(own / "helm" / "config"),
        "HELM_DATA_HOME": str(own / "helm" / "data"),
    }


def _text(manifests: Iterable[Manifest | str]) -> str:
    """One stream of documents; JSON is YAML too."""
    return "\n---\n".join(each if isinstance(each, str) else json.dumps(each) for each in manifests)
