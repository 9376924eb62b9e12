"""Tests run on the cluster that was made for them, or not at all."""

import json
from pathlib import Path

import pytest

from e2e.cluster import guard
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import CONTEXT, Layout
from e2e.cluster.state import State

SERVER = "https://10.210.9.2:6443"


def record(layout: Layout, server: str = SERVER) -> State:
    state = State("native", server, "bin-1", mutating_admission_policy=False, boot="b")
    state.save(layout)
    return state


def kubeconfig(layout: Layout, context: str = CONTEXT, server: str = SERVER) -> None:
    content = {
        "current-context": context,
        "contexts": [
            {"name": "other", "context": {"cluster": "elsewhere"}},
            {"name": context, "context": {"cluster": "here"}},
        ],
        "clusters": [
            {"name": "elsewhere", "cluster": {"server": "https://production.example:6443"}},
            {"name": "here", "cluster": {"server": server}},
        ],
    }
    layout.kubeconfig.write_text(json.dumps(content))


def test_lets_tests_run_on_the_cluster_on_record(layout: Layout) -> None:
    state = record(layout)
    kubeconfig(layout)
    assert guard.require_ours(layout) == state


def test_refuses_without_a_record_even_if_the_user_has_a_cluster_of_that_name(
    layout: Layout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kubeconfig(layout)
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".kube").mkdir()
    (tmp_path / ".kube" / "config").write_text(layout.kubeconfig.read_text())
    monkeypatch.setenv("KUBECONFIG", str(layout.kubeconfig))
    with pytest.raises(ClusterError, match=r"there is no cluster in .*make cluster-up"):
        guard.require_ours(layout)


def test_refuses_another_context(layout: Layout) -> None:
    record(layout)
    kubeconfig(layout, context="production")
    with pytest.raises(ClusterError, match="set to the context 'production', not 'pilothouse-e2e'"):
        guard.require_ours(layout)


def test_refuses_our_context_that_leads_elsewhere(layout: Layout) -> None:
    record(layout)
    kubeconfig(layout, server="https://production.example:6443")
    with pytest.raises(ClusterError, match=r"leads to https://production\.example:6443, not to our cluster"):
        guard.require_ours(layout)


@pytest.mark.parametrize("content", ["", "apiVersion: v1\n", "{}", '{"current-context": "pilothouse-e2e"}', "[]"])
def test_refuses_a_kubeconfig_that_it_did_not_write(layout: Layout, content: str) -> None:
    record(layout)
    layout.kubeconfig.write_text(content)
    with pytest.raises(ClusterError, match="was not written by e2e/cluster"):
        guard.require_ours(layout)


def test_refuses_when_the_kubeconfig_is_gone(layout: Layout) -> None:
    record(layout)
    with pytest.raises(ClusterError, match="was not written by e2e/cluster"):
        guard.require_ours(layout)
