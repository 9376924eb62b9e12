"""The client of a real API server, held to the suite that the cluster in memory of other tests passes."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.cluster.clients import Kubectl
from pilothouse_operator.kube.client import kube_client
from pilothouse_operator.kube.port import Kube
from tests.operator.conformance import KubeConformance

HELD = "e2e.pilothouse.dev/held"


@dataclass
class RealPlace:
    kube: Kube
    namespace: str
    kubectl: Kubectl
    kubeconfig: Path
    folder: Path
    open: AsyncExitStack

    async def fill(self) -> None:
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q"},
            "spec": {"hard": {"pods": "0"}},
        }
        self.kubectl.apply(quota)
        self.kubectl.wait("jsonpath={.status.hard.pods}=0", "resourcequota/q")

    async def powerless(self) -> Kube:
        self.kubectl("create", "serviceaccount", "powerless")
        config: dict[str, Any] = yaml.safe_load(self.kubeconfig.read_text())
        for user in config["users"]:
            user["user"] = {"token": self.kubectl("create", "token", "powerless").strip()}
        path = self.folder / "powerless.json"
        path.write_text(json.dumps(config))
        return await self.open.enter_async_context(kube_client(path))

    async def terminate(self) -> None:
        held = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held", "finalizers": [HELD]}}
        self.kubectl.apply(held)
        self.kubectl("delete", "namespace", self.namespace, "--wait=false")


@pytest.fixture
async def place(namespace: str, kubectl: Kubectl, kubeconfig: Path, tmp_path: Path) -> AsyncIterator[RealPlace]:
    within = kubectl.within(namespace)
    async with AsyncExitStack() as stack:
        kube = await stack.enter_async_context(kube_client(kubeconfig))
        yield RealPlace(kube, namespace, within, kubeconfig, tmp_path, stack)
    free = '{"metadata":{"finalizers":null}}'
    if within.succeeds("get", "configmap", "held"):
        within("patch", "configmap", "held", "--type=merge", f"--patch={free}")


class TestKubeClient(KubeConformance):
    """The suite over a real API server."""
