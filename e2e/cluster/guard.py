"""The guard of the tests: they speak to the cluster that this package made, and to no other.

Tests delete namespaces and kill nodes. So the kubeconfig is the one in the cluster's own folder, never the user's; it
must name our context, and the API server that is on record.
"""

import json
from pathlib import Path
from typing import Any

from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import CONTEXT, Layout
from e2e.cluster.state import State

_REMEDY = "type `make cluster-up`"


def require_ours(layout: Layout) -> State:
    """The record of the cluster; raises ClusterError unless its kubeconfig leads to that cluster."""
    record = State.load(layout)
    if record is None:
        raise ClusterError(f"there is no cluster in {layout.run}: {_REMEDY}")
    context, server = target(layout.kubeconfig)
    if context != CONTEXT:
        raise ClusterError(f"{layout.kubeconfig} is set to the context {context!r}, not {CONTEXT!r}: {_REMEDY}")
    if server != record.server:
        raise ClusterError(f"{layout.kubeconfig} leads to {server}, not to our cluster at {record.server}: {_REMEDY}")
    return record


def target(kubeconfig: Path) -> tuple[str, str]:
    """The current context of a kubeconfig that this package wrote, and the API server that it leads to."""
    try:
        content = json.loads(kubeconfig.read_text())
        current = content["current-context"]
        cluster = _named(content["contexts"], current)["context"]["cluster"]
        return current, _named(content["clusters"], cluster)["cluster"]["server"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ClusterError(f"{kubeconfig} was not written by e2e/cluster ({error}): {_REMEDY}") from error


def _named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return {item["name"]: item for item in items}[name]
