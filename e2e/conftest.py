"""What the tests on a cluster share: the cluster, its clients, the image under test and namespaces of their own."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from e2e.cluster import clients, engine, guard, image
from e2e.cluster.clients import Helm, Kubectl
from e2e.cluster.clusters import Cluster
from e2e.cluster.clusters import of as cluster_of
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import DEFAULT_NAME, NAME_VARIABLE, Layout
from e2e.release import Release

# What a test here may take unless it says otherwise, in seconds: Pods start, images load, nodes count as lost.
_TIME_LIMIT = 300
_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives the tests of this folder their own time limit."""
    for item in items:
        if item.path.is_relative_to(_HERE) and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_TIME_LIMIT))


@pytest.fixture(scope="session")
def layout() -> Iterator[Layout]:
    """The layout of the cluster that the tests run on; the whole session fails if it is not ours.

    From here on also programs that look for a cluster by themselves find this one, and never the user's.
    """
    found = Layout.of(os.environ.get(NAME_VARIABLE, DEFAULT_NAME))
    try:
        guard.require_ours(found)
    except ClusterError as error:
        pytest.exit(f"no cluster to test on: {error}", returncode=pytest.ExitCode.USAGE_ERROR)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in clients.environment(found).items():
            patch.setenv(name, value)
        yield found


@pytest.fixture(scope="session")
def cluster(layout: Layout) -> Cluster:
    """The cluster: to start, stop and kill the components of its node."""
    return cluster_of(layout)


@pytest.fixture(scope="session")
def kubeconfig(layout: Layout) -> Path:
    """The kubeconfig of the cluster's administrator."""
    return layout.kubeconfig


@pytest.fixture(scope="session")
def kubectl(layout: Layout) -> Kubectl:
    """kubectl, as the cluster's administrator."""
    return Kubectl(layout)


@pytest.fixture(scope="session")
def helm(layout: Layout) -> Helm:
    """Helm, as the cluster's administrator."""
    return Helm(layout)


@pytest.fixture(scope="session")
def our_image(layout: Layout, cluster: Cluster) -> str:
    """The name of the image of this checkout, which is on the node; it is built where it is not."""
    return image.ensure(layout, engine.find_for_kind(), cluster)


@pytest.fixture(scope="session")
def namespaces(kubectl: Kubectl) -> Iterator[list[str]]:
    """The namespaces that tests have left to be deleted; all of them are gone when the session is over."""
    left: list[str] = []
    yield left
    for name in left:
        kubectl.wait("delete", f"namespace/{name}", seconds=120)


@contextmanager
def _own_namespace(kubectl: Kubectl, left: list[str]) -> Iterator[str]:
    metadata = {"generateName": "e2e-", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}
    manifest = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    name = kubectl("create", "--filename=-", "--output=jsonpath={.metadata.name}", stdin=manifest)
    kubectl.within(name).wait("create", "serviceaccount/default")
    yield name
    kubectl("delete", "namespace", name, "--wait=false")
    left.append(name)


@pytest.fixture
def namespace(kubectl: Kubectl, namespaces: list[str]) -> Iterator[str]:
    """A namespace of the test's own, which admits restricted Pods only; it is deleted when the test is over."""
    with _own_namespace(kubectl, namespaces) as name:
        yield name


@pytest.fixture(scope="module")
def shared_namespace(kubectl: Kubectl, namespaces: list[str]) -> Iterator[str]:
    """The same, for all tests of a file: what they look at may then run at the same time."""
    with _own_namespace(kubectl, namespaces) as name:
        yield name


@pytest.fixture(scope="session")
def release(helm: Helm, kubectl: Kubectl, our_image: str) -> Release:
    """Pilothouse, installed and checked. It stays until the cluster goes."""
    installed = Release(helm, kubectl, our_image)
    installed.install()
    return installed
