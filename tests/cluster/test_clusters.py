"""Which kind of cluster is made on which machine."""

from collections.abc import Callable

import pytest

from e2e.cluster import clusters, engine
from e2e.cluster.components import Options
from e2e.cluster.errors import ClusterError
from e2e.cluster.kind import KindCluster, node_configuration
from e2e.cluster.layout import Layout
from e2e.cluster.native import NativeCluster
from e2e.cluster.state import Kind, State

Put = Callable[[str, str], None]
UP, DOWN = "exit 0", "exit 1"


def record(layout: Layout, kind: Kind) -> None:
    State(kind, "https://127.0.0.1:1", "bin-1", mutating_admission_policy=False, boot="b").save(layout)


def test_without_an_engine_the_cluster_is_native(layout: Layout, program: Put) -> None:
    program("kind", UP)
    assert isinstance(clusters.of(layout), NativeCluster)


def test_a_client_without_its_daemon_is_no_engine(layout: Layout, program: Put) -> None:
    program("docker", DOWN)
    program("kind", UP)
    assert engine.find() is None
    assert isinstance(clusters.of(layout), NativeCluster)


def test_an_engine_without_kind_makes_no_cluster(layout: Layout, program: Put) -> None:
    program("docker", UP)
    assert isinstance(clusters.of(layout), NativeCluster)


@pytest.mark.parametrize("name", ["docker", "podman"])
def test_kind_makes_it_with_the_engine_that_answers(layout: Layout, program: Put, name: str) -> None:
    program("docker", DOWN)
    program(name, UP)
    program("kind", UP)
    assert engine.find_for_kind() == name
    assert isinstance(clusters.of(layout), KindCluster)


def test_a_native_cluster_stays_native_when_an_engine_comes(layout: Layout, program: Put) -> None:
    record(layout, "native")
    program("docker", UP)
    program("kind", UP)
    assert isinstance(clusters.of(layout), NativeCluster)


def test_a_cluster_of_kind_needs_its_engine_again(layout: Layout, program: Put) -> None:
    record(layout, "kind")
    program("docker", DOWN)
    with pytest.raises(ClusterError, match="made by kind, and no container engine answers"):
        clusters.of(layout)


def test_kind_switches_mutating_admission_policies_on_when_asked() -> None:
    assert "featureGates" not in node_configuration(Options())
    switched = node_configuration(Options(mutating_admission_policy=True))
    assert switched["featureGates"] == {"MutatingAdmissionPolicy": True}
    assert switched["runtimeConfig"] == {"admissionregistration.k8s.io/v1beta1": "true"}
