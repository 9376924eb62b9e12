"""Who speaks to the store API: a Pod, known by the token that the kubelet put into it, and the one attempt that it
carries out.

A projected token is exchanged for an attempt token. Everything must hold, or nothing is admitted: Kubernetes knows
the token for our audience and its Pod is still there; the token belongs to a service account and is bound to a Pod;
that Pod carries an attempt; the attempt's run is of the service account's namespace; the attempt is open.
"""

import time

from starlette.requests import Request

from pilothouse.gateway import tokens
from pilothouse.gateway.kubeapi import Identity, KubeApi, bearer
from pilothouse.gateway.refusals import Forbidden
from pilothouse.gateway.tokens import Bearer
from pilothouse.records.runs import Attempt
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import NotFound
from pilothouse.store.ports import RunStore
from pilothouse.store.refusals import superseded

AUDIENCE = "pilothouse-store"
"""What a Pod's projected token must have been made for."""

_POD_UID = "authentication.kubernetes.io/pod-uid"
_KEY_KEPT = 60.0
"""Seconds for which the database's key is kept in memory."""


class Admission:
    """The door of the store API."""

    def __init__(self, store: RunStore, kube: KubeApi) -> None:
        self._store = store
        self._kube = kube
        self._key = b""
        self._key_read = 0.0

    async def admit(self, request: Request) -> tuple[str, Bearer]:
        """An attempt token for the bearer of a projected one. Raises Unauthenticated, Forbidden, and Superseded where
        the Pod's attempt is over."""
        identity = await self._kube.review(bearer(request.headers.get("Authorization")), AUDIENCE)
        attempt = await self._attempt(identity)
        if attempt.state is not AttemptState.OPEN:
            raise superseded(attempt.ref)
        admitted = Bearer(attempt.ref, attempt.step)
        return tokens.issue(await self._token_key(), admitted), admitted

    async def known(self, request: Request) -> Bearer:
        """Whose attempt token this request bears. Raises Unauthenticated."""
        token = bearer(request.headers.get("Authorization"))
        return tokens.verify(await self._token_key(), token)

    async def _attempt(self, identity: Identity) -> Attempt:
        namespace, pod = _namespace(identity), _pod(identity)
        try:
            return await self._store.carried(pod, namespace)
        except (NotFound, ValueRefused):
            raise Forbidden("no attempt") from None

    async def _token_key(self) -> bytes:
        now = time.monotonic()
        if not self._key or now - self._key_read > _KEY_KEPT:
            self._key = await self._store.token_key()
            self._key_read = now
        return self._key


def _namespace(identity: Identity) -> str:
    """The namespace of a service account. Raises Forbidden for everyone else."""
    match identity.username.split(":"):
        case ["system", "serviceaccount", namespace, name] if namespace and name:
            return namespace
    raise Forbidden("no service account")


def _pod(identity: Identity) -> str:
    """The UID of the Pod that the token is bound to."""
    match identity.extra.get(_POD_UID):
        case (uid,) if uid:
            return uid
    raise Forbidden("no Pod")
