"""A gateway with a Pod of one attempt before it, as the tests of the store API use them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID, uuid4

import httpx
from prometheus_client import CollectorRegistry

from pilothouse.gateway import tokens
from pilothouse.gateway.app import build_app
from pilothouse.gateway.tokens import Bearer
from pilothouse.records.runs import AttemptRef
from pilothouse.store.ports import RunStore
from tests.gateway.doubles import FakeKube
from tests.gateway.serving import NO_HISTORY, http, served
from tests.store.samples import BUILD, created, open_attempt


@dataclass
class Desk:
    """The gateway's address and all that stands around it; `projected` is the token of the Pod of `ref`."""

    url: str
    client: httpx.AsyncClient
    store: RunStore
    kube: FakeKube
    registry: CollectorRegistry
    ref: AttemptRef
    projected: str

    async def post(self, method: str, token: str | None, content: bytes | str = b"", **headers: str) -> httpx.Response:
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        return await self.client.post(method, content=content, headers=headers)

    async def exchange(self, projected: str | None = None) -> httpx.Response:
        return await self.post("token", projected or self.projected)

    async def token(self) -> str:
        """An attempt token, as the gateway gives it."""
        text: str = (await self.exchange()).json()["token"]
        return text

    async def minted(self, ref: AttemptRef) -> str:
        """A token with the right signature, for any attempt."""
        return tokens.issue(await self.store.token_key(), Bearer(ref, BUILD))


@asynccontextmanager
async def desk_on(store: RunStore) -> AsyncIterator[Desk]:
    kube, registry = FakeKube(), CollectorRegistry()
    ref, projected = await carried_attempt(store, kube)
    async with served(build_app(store, NO_HISTORY, kube, registry)) as url, http(url) as client:
        yield Desk(url, client, store, kube, registry, ref, projected)


async def carried_attempt(store: RunStore, kube: FakeKube, tenant: UUID | None = None) -> tuple[AttemptRef, str]:
    """An open attempt and the projected token of the Pod that carries it out."""
    ref, pod = await open_attempt(store, await created(store, tenant)), str(uuid4())
    await store.carry(ref, 1, pod)
    return ref, kube.pod(pod)
