"""Whose a process is, and that no other is ever touched."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cluster import processes
from e2e.cluster.commands import wait_for
from e2e.cluster.processes import Process

SLEEP = ("sleep", "600")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """The folder of a cluster, whose processes end with the test."""
    yield tmp_path
    for process in processes.marked(tmp_path):
        processes.kill(tmp_path, process)


def begin(cluster: Path, component: str = "etcd") -> Process:
    processes.start(cluster, component, SLEEP, "sleep", cluster / "log")
    found = processes.find(cluster, component, "sleep")
    assert found is not None
    return found


def test_finds_a_component_by_its_mark_and_program(cluster: Path) -> None:
    began = begin(cluster)
    assert processes.find(cluster, "etcd", "sleep") == began
    assert processes.find(cluster, "etcd", "etcd") is None
    assert processes.find(cluster, "kubelet", "sleep") is None


def test_what_a_component_starts_is_the_clusters_but_not_the_component(cluster: Path) -> None:
    shell = ("sh", "-c", "sleep 600 & wait")
    processes.start(cluster, "containerd", shell, "sh", cluster / "log")
    parent = processes.find(cluster, "containerd", "sh")
    assert parent is not None
    wait_for("the shell has a child", lambda: len(processes.marked(cluster)) == 2, seconds=10)
    child = processes.find(cluster, "containerd", "sleep")
    assert child is not None
    assert child.pid != parent.pid


def test_another_cluster_and_an_unmarked_process_are_not_ours(
    cluster: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    began, other = begin(cluster), tmp_path_factory.mktemp("other")
    with subprocess.Popen(SLEEP) as unmarked:
        assert processes.marked(other) == []
        assert processes.marked(cluster) == [began]
        unmarked.kill()


def test_a_process_id_that_now_belongs_to_somebody_else_is_left_alone(cluster: Path) -> None:
    with subprocess.Popen(SLEEP) as stranger:
        stale = Process(stranger.pid, "etcd", "sleep")
        assert processes.end(cluster, stale, signal.SIGKILL, seconds=1)
        assert stranger.poll() is None
        stranger.kill()


def test_stopping_waits_until_the_process_is_gone_and_twice_is_once(cluster: Path) -> None:
    began = begin(cluster)
    processes.stop(cluster, began)
    assert processes.find(cluster, "etcd", "sleep") is None
    processes.stop(cluster, began)


def test_a_process_that_ignores_the_request_to_end_says_so(cluster: Path) -> None:
    deaf = ("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 600; done")
    processes.start(cluster, "etcd", deaf, "sh", cluster / "log")
    wait_for("it is deaf", lambda: (cluster / "log").read_text() == "deaf\n", seconds=10)
    process = processes.find(cluster, "etcd", "sh")
    assert process is not None
    assert not processes.end(cluster, process, signal.SIGTERM, seconds=0.1)
    processes.kill(cluster, process)
    assert processes.find(cluster, "etcd", "sh") is None


def test_a_program_that_ends_at_once_leaves_its_reason_in_the_log(cluster: Path) -> None:
    processes.start(cluster, "etcd", ("sh", "-c", "echo no disk; exit 1"), "etcd", cluster / "log")
    assert processes.find(cluster, "etcd", "etcd") is None
    assert (cluster / "log").read_text() == "no disk\n"
