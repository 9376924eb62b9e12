"""What is asked of kind and of the engine, told by stand-ins for them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import binaries, guard
from e2e.cluster.components import Options
from e2e.cluster.errors import ClusterError
from e2e.cluster.kind import KindCluster
from e2e.cluster.layout import Layout

Put = Callable[[str, str], None]
SERVER = "https://127.0.0.1:40001"
KUBECONFIG = {
    "current-context": "kind-pilothouse-t0",
    "contexts": [{"name": "kind-pilothouse-t0", "context": {"cluster": "kind-pilothouse-t0", "user": "u"}}],
    "clusters": [{"name": "kind-pilothouse-t0", "cluster": {"server": SERVER}}],
    "users": [{"name": "u", "user": {}}],
}
# kind writes its kubeconfig as YAML, which kubectl turns into JSON.
KIND = """
echo "kind $*" >> "{asked}"
case "$*" in "create cluster"*) echo 'kind: Config' > "{kubeconfig}"; {then} ;; esac
"""
KUBECTL = """#!/bin/sh
case "$*" in "config view"*) echo '{content}' ;; "get --raw /readyz") test -e "{kubeconfig}" ;; *) exit 1 ;; esac
"""


class Machine:
    """A machine with a kind and a docker that note what they are asked for."""

    def __init__(self, layout: Layout, program: Put, folder: Path) -> None:
        self._layout, self._program, self._log = layout, program, folder / "asked"
        self.kind_then("true")
        program("docker", f'echo "docker $*" >> "{self._log}"')
        programs = binaries.folder(layout)
        programs.mkdir(parents=True)
        for client in binaries.CLIENTS:
            text = KUBECTL.format(content=json.dumps(KUBECONFIG), kubeconfig=layout.kubeconfig)
            (programs / client.name).write_text(text)
            (programs / client.name).chmod(0o755)

    def kind_then(self, command: str) -> None:
        """Has kind, asked to create a cluster, go on with a command."""
        self._program("kind", KIND.format(asked=self._log, kubeconfig=self._layout.kubeconfig, then=command))

    def asked(self) -> list[str]:
        """The first three words of all that was asked since the last time."""
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        self._log.unlink(missing_ok=True)
        return [" ".join(line.split()[:3]) for line in lines]


@pytest.fixture
def machine(layout: Layout, program: Put, tmp_path: Path) -> Machine:
    return Machine(layout, program, tmp_path)


@pytest.fixture
def cluster(layout: Layout) -> KindCluster:
    return KindCluster(layout, "docker")


def test_a_cluster_of_kind_passes_the_guard(layout: Layout, machine: Machine, cluster: KindCluster) -> None:
    cluster.up(Options())
    assert guard.require_ours(layout).server == SERVER
    assert machine.asked() == ["kind delete cluster", "kind create cluster"]


def test_making_it_again_asks_for_nothing_unless_the_options_differ(machine: Machine, cluster: KindCluster) -> None:
    cluster.up(Options())
    machine.asked()
    cluster.up(Options())
    assert machine.asked() == []
    cluster.up(Options(mutating_admission_policy=True))
    assert machine.asked() == ["kind delete cluster", "kind create cluster"]


def test_what_was_half_made_is_removed_before_the_next_try(
    layout: Layout, machine: Machine, cluster: KindCluster
) -> None:
    machine.kind_then("echo no room; exit 1")
    with pytest.raises(ClusterError, match="no room"):
        cluster.up(Options())
    with pytest.raises(ClusterError, match="there is no cluster"):
        guard.require_ours(layout)
    machine.kind_then("true")
    machine.asked()
    cluster.up(Options())
    assert machine.asked() == ["kind delete cluster", "kind create cluster"]


def test_removing_it_removes_its_record(layout: Layout, machine: Machine, cluster: KindCluster) -> None:
    cluster.up(Options())
    cluster.down()
    assert machine.asked()[-1] == "kind delete cluster"
    assert list(layout.run.iterdir()) == []


def test_disturbs_what_can_be_disturbed_in_a_node_of_kind(machine: Machine, cluster: KindCluster) -> None:
    cluster.stop("kubelet")
    cluster.start("kubelet")
    cluster.kill("apiserver")
    assert machine.asked() == ["docker exec pilothouse-t0-control-plane"] * 3
    with pytest.raises(ClusterError, match="only kubelet and containerd can be stopped, not etcd"):
        cluster.stop("etcd")
    with pytest.raises(ClusterError, match="netpol is a Pod: delete it with kubectl"):
        cluster.kill("netpol")
