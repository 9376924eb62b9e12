"""The release under test: Pilothouse, installed with Helm as its users install it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from e2e.cluster.clients import Helm, Kubectl

CHART = "charts/pilothouse"
NAMESPACE = "pilothouse"
NAME = "pilothouse"

_INSTALL_LIMIT = 240
"""Seconds within which an install must work, its own check included."""

_SQL = """
import json, os, sys, time
import psycopg

def connection(until):
    # A new connection may be refused for a moment, while the node takes in that Pods came or went.
    try:
        return psycopg.connect(os.environ["PILOTHOUSE_DSN"])
    except psycopg.OperationalError:
        if time.monotonic() > until:
            raise
    time.sleep(0.2)
    return connection(until)

rows = connection(time.monotonic() + 10).execute(sys.argv[1], sys.argv[2:] or None).fetchall()
print(json.dumps([[None if v is None else str(v) for v in row] for row in rows]))
"""


@dataclass(frozen=True)
class Release:
    """One release in a namespace of its own."""

    helm: Helm
    kubectl: Kubectl
    image: str
    name: str = NAME
    namespace: str = NAMESPACE

    @property
    def own(self) -> Kubectl:
        """kubectl in the release's namespace."""
        return self.kubectl.within(self.namespace)

    def install(self, *values: str) -> None:
        """Installs the release, or brings it to this chart and image, and waits until its own check has passed."""
        if not self.kubectl.succeeds("get", "namespace", self.namespace):
            self.kubectl("create", "namespace", self.namespace)
        enforce = "pod-security.kubernetes.io/enforce=restricted"
        self.kubectl("label", "--overwrite", "namespace", self.namespace, enforce)
        self.helm("upgrade", "--install", self.name, CHART, *self._options(values), timeout=_INSTALL_LIMIT + 30)

    def uninstall(self) -> None:
        self.helm("uninstall", self.name, "--namespace", self.namespace, "--wait", timeout=120)

    def scale(self, component: str, replicas: int) -> None:
        """Scales a Deployment of the release, and waits until it is so."""
        self.own("scale", f"deployment/{self.name}-{component}", f"--replicas={replicas}")
        self._rolled_out(component)
        if replicas == 0:
            self.own(
                "wait", "--for=delete", "pod", f"--selector={self._selector(component)}", "--timeout=60s", timeout=70
            )

    def settle(self) -> None:
        """Returns once the newest Pods of all Deployments have taken the place of the ones before."""
        for component in ("operator", "gateway"):
            self._rolled_out(component)

    def _rolled_out(self, component: str) -> None:
        self.own("rollout", "status", f"deployment/{self.name}-{component}", "--timeout=120s", timeout=130)

    def pods(self, component: str) -> Sequence[dict[str, Any]]:
        """The Pods of a component."""
        return self.own.items("pods", f"--selector={self._selector(component)}")

    def sql(self, query: str, *values: str) -> list[list[str]]:
        """The rows that a query of the release's database gives, each value as text. `values` are for its `%s`."""
        pod = self.pods("operator")[0]["metadata"]["name"]
        rows: list[list[str]] = json.loads(self.own("exec", pod, "--", "python", "-I", "-c", _SQL, query, *values))
        return rows

    def _selector(self, component: str) -> str:
        return f"app.kubernetes.io/instance={self.name},app.kubernetes.io/component={component}"

    def _options(self, values: Sequence[str]) -> list[str]:
        repository, _, tag = self.image.rpartition(":")
        given = [
            f"image.repository={repository}",
            f"image.tag={tag}",
            "postgres.bundled.storage.size=1Gi",
            *values,
        ]
        sets = [word for value in given for word in ("--set", value)]
        return ["--namespace", self.namespace, *sets, "--timeout", f"{_INSTALL_LIMIT}s"]
