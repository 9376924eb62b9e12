"""The container engine of this machine, if one really answers."""

import shutil
from typing import Literal

from e2e.cluster.commands import succeeds

Engine = Literal["docker", "podman"]

_ENGINES: tuple[Engine, ...] = ("docker", "podman")
_PATIENCE = 15


def find() -> Engine | None:
    """The first engine that answers: a client alone, without its daemon, makes no container."""
    return next((engine for engine in _ENGINES if succeeds(engine, "info", timeout=_PATIENCE)), None)


def find_for_kind() -> Engine | None:
    """The engine with which kind can make a cluster here; None if there is none, or no kind."""
    return find() if shutil.which("kind") else None
