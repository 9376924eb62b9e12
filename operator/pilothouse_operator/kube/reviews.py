"""The gateway's questions, asked of the API server: whose a token is (TokenReview), and what its owner may do
(SubjectAccessReview).

What is not a clear yes is no: an answer that cannot be had or read is an outage, never a yes.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Generic, TypeVar
from uuid import UUID

from lightkube.core.exceptions import ConfigError

from pilothouse.gateway.kubeapi import Identity, KubeUnavailable, Unauthenticated
from pilothouse_operator.kube.client import kube_client
from pilothouse_operator.kube.errors import KubeError
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import NAMESPACES, Resource

KEPT = 10.0
"""Seconds for which a yes is remembered: that a caller's own token is theirs, and that they may do something."""

_PATIENCE = 10.0
"""Seconds within which the API server must have answered."""

_TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

_PASSING = ("etcdserver", "timed out", "timeout", "deadline exceeded", "connection refused", "unavailable", "too many")
"""Signs in the error of a TokenReview that the API server itself could not look: nothing is known of the token then."""


@asynccontextmanager
async def open_reviews() -> AsyncIterator["Reviews"]:
    """Asks as this Pod's service account, or as the kubeconfig says. Raises RuntimeError where there is neither."""
    async with AsyncExitStack() as held:
        try:
            kube = await held.enter_async_context(kube_client())
        except ConfigError as error:
            raise RuntimeError(f"there is no way to an API server: {error}") from None
        yield Reviews(kube)


class Reviews:
    """Implements the gateway's port `KubeApi`."""

    def __init__(self, kube: Kube, clock: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._identities = _Recent[Identity](clock)
        self._rights = _Recent[bool](clock)

    async def review(self, token: str, audience: str | None = None) -> Identity:
        """A token with an audience is a Pod's, which may have been deleted a moment ago: it is asked about anew."""
        if audience is not None:
            return await self._review(token, audience)
        key = hashlib.sha256(token.encode()).digest()
        known = self._identities.get(key)
        return known or self._identities.put(key, await self._review(token, None))

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
        attributes = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "namespace": namespace,
            "name": name,
            "subresource": subresource,
        }
        spec = _subject(identity) | {"resourceAttributes": {key: text for key, text in attributes.items() if text}}
        key = repr(spec)
        if self._rights.get(key):
            return True
        status = await self._ask(_ACCESS_REVIEWS, spec)
        if status.get("allowed") is not True or status.get("denied"):
            return False
        return self._rights.put(key, True)

    async def namespace_uid(self, name: str) -> UUID | None:
        with _answered("Namespace"):
            async with asyncio.timeout(_PATIENCE):
                namespace = await self._kube.get(NAMESPACES, None, name)
            return UUID(namespace["metadata"]["uid"]) if namespace else None

    async def _review(self, token: str, audience: str | None) -> Identity:
        status = await self._ask(_TOKEN_REVIEWS, {"token": token} | ({"audiences": [audience]} if audience else {}))
        error = str(status.get("error") or "")
        if any(sign in error.lower() for sign in _PASSING):
            raise KubeUnavailable(f"the API server could not review a token: {error}")
        if status.get("authenticated") is not True or error:
            raise Unauthenticated("token review")
        if audience is not None and audience not in (status.get("audiences") or ()):
            raise Unauthenticated("audience")  # a server that knows no audiences says yes to any
        return _identity(status.get("user"))

    async def _ask(self, review: Resource, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The status of the review. Raises KubeUnavailable."""
        body = {"apiVersion": review.api_version, "kind": review.kind, "spec": spec}
        with _answered(review.kind):
            async with asyncio.timeout(_PATIENCE):
                status = (await self._kube.create(review, "", body)).get("status")
        if not isinstance(status, dict):
            raise KubeUnavailable(f"a {review.kind} came back without a status")
        return status


@contextmanager
def _answered(kind: str) -> Iterator[None]:
    """Whatever keeps the API server's answer from us is an outage. Raises KubeUnavailable."""
    try:
        yield
    except TimeoutError:
        raise KubeUnavailable(f"no {kind} within {_PATIENCE:g} s") from None
    except (KubeError, ConfigError, ValueError, KeyError, AttributeError) as error:
        raise KubeUnavailable(f"no {kind} can be had: {error}") from None


def _identity(user: Any) -> Identity:
    """Raises Unauthenticated for somebody without a name."""
    match user:
        case {"username": str(name)} if name:
            extra = {key: tuple(values) for key, values in (user.get("extra") or {}).items()}
            return Identity(name, user.get("uid") or "", tuple(user.get("groups") or ()), extra)
    raise Unauthenticated("token review")


def _subject(identity: Identity) -> dict[str, Any]:
    return {
        "user": identity.username,
        "uid": identity.uid,
        "groups": list(identity.groups),
        "extra": {key: list(values) for key, values in sorted(identity.extra.items())},
    }


T = TypeVar("T")


class _Recent(Generic[T]):
    """What was answered within the last KEPT seconds; at most a thousand answers."""

    _MOST = 1_000

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[object, tuple[float, T]] = {}

    def get(self, key: object) -> T | None:
        until, value = self._kept.get(key, (0.0, None))
        return value if self._clock() < until else None

    def put(self, key: object, value: T) -> T:
        self._kept.pop(key, None)
        if len(self._kept) >= self._MOST:
            self._kept.pop(next(iter(self._kept)))
        self._kept[key] = (self._clock() + KEPT, value)
        return value
