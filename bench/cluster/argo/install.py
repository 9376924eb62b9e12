"""Argo's controller on the cluster, from Argo's own manifests; `kustomization.yaml` says what of them."""

import shutil
import tempfile
from pathlib import Path

from bench.cluster.argo import VERSION
from bench.cluster.argo.source import PROGRAMS, ensure
from e2e.cluster import archive
from e2e.cluster.clients import Kubectl
from e2e.cluster.clusters import Cluster
from e2e.cluster.commands import run

NAMESPACE = "argo"

_REPOSITORY = "quay.io/argoproj"
_USER = "8737"
"""As whom both images run. Argo publishes one of the executor that does so too, and one for root."""

_EXECUTOR = ("executor/emissary/executor-role.yaml", "executor-default-rolebinding.yaml")
"""What the executor may do in a namespace, below Argo's `manifests/quick-start/base`."""


def install(kubectl: Kubectl, cluster: Cluster) -> None:
    """Compiles Argo if need be, takes its images onto the node, and returns when its controller runs."""
    folder = ensure(kubectl.layout)
    for program in PROGRAMS:
        _load(cluster, folder / program)
    own = folder / "source/manifests/pilothouse-bench"
    own.mkdir(exist_ok=True)
    shutil.copy(Path(__file__).with_name("kustomization.yaml"), own)
    if not kubectl.succeeds("get", "namespace", NAMESPACE):
        kubectl("create", "namespace", NAMESPACE)
    kubectl.apply(kubectl("kustomize", str(own)), server_side=True)
    rollout = ("rollout", "status", "deployment/workflow-controller", "--timeout=180s")
    kubectl.within(NAMESPACE)(*rollout, timeout=190)


def admit(kubectl: Kubectl) -> None:
    """Lets the executor report from the Pods of a namespace, as Argo's quick start does."""
    roles = kubectl.layout.cache / f"argo-{VERSION}/source/manifests/quick-start/base"
    kubectl.apply(*((roles / file).read_text() for file in _EXECUTOR))


def _load(cluster: Cluster, program: Path) -> None:
    image = f"{_REPOSITORY}/{program.name}:{VERSION}"
    if cluster.has(image):
        return
    config = {"Entrypoint": [program.name], "Env": ["PATH=/bin"], "User": _USER}
    platform = {"os": "linux", "architecture": run("go", "env", "GOARCH").strip()}
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "image.tar"
        archive.save(image, program.read_bytes(), {**platform, "config": config}, saved, f"bin/{program.name}")
        cluster.load(saved)
