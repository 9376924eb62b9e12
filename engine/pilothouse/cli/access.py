"""How the command line reaches the gateway of a cluster. The engine knows no more of Kubernetes than this."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from pilothouse.cli.command import CommandError
from pilothouse.records.runs import Attempt, Run

GROUP, NAME = "pilothouse.kube", "proxy"
"""The entry point that supplies the implementation: a callable that takes a Target."""

GATEWAY = "pilothouse/pilothouse-gateway"
"""Where the chart puts the gateway, as NAMESPACE/SERVICE."""


@dataclass(frozen=True, slots=True)
class Target:
    """Which gateway is meant. Without a context it is the kubeconfig's current one; without a kubeconfig it is where
    kubectl looks for one. `gateway` is NAMESPACE/SERVICE or a URL; `token` is shown to the gateway instead of the
    context's own."""

    context: str | None = None
    kubeconfig: Path | None = None
    gateway: str = GATEWAY
    token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateway answered."""

    status: int
    body: bytes


class Access(Protocol):
    """A gateway within reach, and a user who is known to the cluster."""

    @property
    def namespace(self) -> str:
        """The namespace of the user's context."""
        ...

    async def get(self, path: str, query: Mapping[str, str]) -> Answer:
        """The gateway's answer to a path below `/read/v1/`. Raises StoreUnavailable where the cluster or the gateway
        is away, StoreUnusable where anything but the gateway refuses; the message says what to do."""
        ...

    async def post(self, path: str, query: Mapping[str, str], body: bytes) -> Answer:
        """The gateway's answer to a JSON body. Raises as `get` does; after StoreUnavailable nobody knows whether it was
        carried out."""
        ...

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        """What the Pod of a command has printed up to now, by the rights of the user's context; nothing where there
        is no such Pod. Raises as `get` does."""
        ...


def open_access(target: Target) -> AbstractAsyncContextManager[Access]:
    """The installed implementation. Raises CommandError where it is not installed."""
    for point in entry_points(group=GROUP, name=NAME):
        try:
            opened: Callable[[Target], AbstractAsyncContextManager[Access]] = point.load()
        except ModuleNotFoundError as error:
            raise _not_installed(f" ({error.name} is missing)") from None
        return opened(target)
    raise _not_installed("")


def _not_installed(reason: str) -> CommandError:
    return CommandError(f"reading a cluster needs more than is installed{reason}: pip install 'pilothouse[operator]'")
