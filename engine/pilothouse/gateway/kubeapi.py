"""What the gateway asks of Kubernetes: whose a token is, and what its owner may do. The engine knows no more of it.

Every answer that is not a clear yes is an exception or False; nothing here ever means "allowed" by default.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Protocol
from uuid import UUID

GROUP, NAME = "pilothouse.kube", "reviews"
"""The entry point that supplies the implementation."""


class Unauthenticated(Exception):  # noqa: N818 - the verdict, as a review says it
    """The token is nobody's, has expired, is for another audience, or belongs to a Pod that is gone. The text is the
    reason in a word or two, for metrics and the log alone."""


class KubeUnavailable(Exception):  # noqa: N818
    """The API server gave no answer, so nothing is known; the message is for the operators of the cluster."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom the API server takes the bearer of a token for."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class KubeApi(Protocol):
    """The API server's judgement. Every call raises KubeUnavailable where there is none."""

    async def review(self, token: str, audience: str | None = None) -> Identity:
        """Whose token it is. `audience` is one that the token must have been made for; None is the API server's own.
        Raises Unauthenticated. With an audience the answer is never an older one."""
        ...

    async def allowed(
        self,
        identity: Identity,
        verb: str,
        group: str,
        resource: str,
        namespace: str,
        name: str = "",
        subresource: str = "",
    ) -> bool:
        """Whether RBAC and the other authorizers let the identity do that. A yes may be ten seconds old."""
        ...

    async def namespace_uid(self, name: str) -> UUID | None:
        """The UID of the namespace that has the name now, None where none has. Never an older answer."""
        ...


def open_kube_api() -> AbstractAsyncContextManager[KubeApi]:
    """The installed implementation. Raises RuntimeError where there is none."""
    for point in entry_points(group=GROUP, name=NAME):
        opened: Callable[[], AbstractAsyncContextManager[KubeApi]] = point.load()
        return opened()
    raise RuntimeError(f"nothing supplies `{NAME}` of {GROUP}: install pilothouse[operator]")


def bearer(header: str | None) -> str:
    """The token of an Authorization header. Raises Unauthenticated."""
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("no token")
    return token.strip()
