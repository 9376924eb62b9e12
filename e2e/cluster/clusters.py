"""Which cluster there is, or is to be: the one on record, else kind's where it can be had, else the native one."""

from pathlib import Path
from typing import Protocol

from e2e.cluster import engine
from e2e.cluster.components import Options
from e2e.cluster.engine import Engine
from e2e.cluster.errors import ClusterError
from e2e.cluster.kind import KindCluster
from e2e.cluster.layout import Layout
from e2e.cluster.native import NativeCluster
from e2e.cluster.state import State


class Cluster(Protocol):
    """What can be done with a cluster, whoever makes it. Components are named as in `components.names()`."""

    def up(self, options: Options) -> None: ...
    def down(self) -> None: ...
    def status(self) -> dict[str, str]: ...
    def start(self, name: str) -> None: ...
    def stop(self, name: str) -> None: ...
    def kill(self, name: str) -> None: ...
    def kill_container(self, id_: str) -> None: ...
    def has(self, image: str) -> bool: ...
    def load(self, archive: Path) -> None: ...
    def tag(self, image: str, name: str) -> None: ...


def of(layout: Layout) -> Cluster:
    """The cluster of a layout; raises ClusterError if the one on record needs an engine that no longer answers."""
    record, available = State.load(layout), engine.find_for_kind()
    if record is None:
        return _of(layout, available)
    if record.kind == "native":
        return NativeCluster(layout)
    if available is None:
        raise ClusterError("the cluster on record was made by kind, and no container engine answers: start it again")
    return KindCluster(layout, available)


def _of(layout: Layout, available: Engine | None) -> Cluster:
    return KindCluster(layout, available) if available else NativeCluster(layout)
