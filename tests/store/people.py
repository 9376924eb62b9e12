"""Sessions as people reach them from elsewhere: through the read API of a gateway, each tenant in its own namespace."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

import httpx

from pilothouse.cli.access import Answer
from pilothouse.cli.questions import Questions
from pilothouse.cli.sessions.remote import RemoteSessionStore
from pilothouse.gateway.app import build_app
from pilothouse.gateway.read.wire import ROOT, TOKEN_HEADER
from pilothouse.records.runs import Attempt, Run
from pilothouse.store.history import RunHistory
from pilothouse.store.pages import SessionReading
from pilothouse.store.ports import RunStore, SessionStore
from tests.gateway.doubles import ANN, FakeKube
from tests.gateway.serving import CA, StoreOverHTTP, http, served

WRITER = ("create sessions", "create sessions/messages", "delete sessions/messages")
READER = ("list workflows", "get pods/log")


@dataclass(frozen=True)
class Direct:
    """An Access straight to a gateway, by one token."""

    http: httpx.AsyncClient
    token: str = ANN
    namespace: str = "default"

    async def get(self, path: str, query: Mapping[str, str]) -> Answer:
        return _answer(await self.http.get(f"{ROOT}/{path}", params=query, headers=self._headers))

    async def post(self, path: str, query: Mapping[str, str], body: bytes) -> Answer:
        return _answer(await self.http.post(f"{ROOT}/{path}", params=query, content=body, headers=self._headers))

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        return b""

    @property
    def _headers(self) -> dict[str, str]:
        return {TOKEN_HEADER: self.token}


def _answer(response: httpx.Response) -> Answer:
    return Answer(response.status_code, response.content)


class SessionsAlone:
    """A history that has the sessions of the store, and nothing else."""

    def __init__(self, store: RunStore) -> None:
        self._store = store

    def session_pages(self) -> SessionReading:
        return self._store.session_store()


class PeoplesSessions:
    """A SessionStore for every tenant: Ann may do all in the namespace that each has."""

    def __init__(self, access: Direct, kube: FakeKube) -> None:
        self._access = access
        self._kube = kube

    def of(self, tenant: UUID) -> RemoteSessionStore:
        name = f"of-{tenant}"
        self._kube.namespaces[name] = tenant
        self._kube.grant("ann", name, *READER, *WRITER)
        return RemoteSessionStore(Questions(self._access), name)

    def __getattr__(self, method: str) -> Any:
        async def call(tenant: UUID, *args: Any, **kwargs: Any) -> Any:
            return await getattr(self.of(tenant), method)(tenant, *args, **kwargs)

        return call


class StoreForPeople(StoreOverHTTP):
    """A store whose sessions people reach through a gateway, and whose attempts do, too."""

    def __init__(self, store: RunStore, client: httpx.AsyncClient, sessions: PeoplesSessions) -> None:
        super().__init__(store, client)
        self._sessions = sessions

    def session_store(self) -> SessionStore:
        return cast(SessionStore, self._sessions)


@asynccontextmanager
async def over_http(store: RunStore) -> AsyncIterator[RunStore]:
    """The store, whose attempts and sessions are reached through a gateway on a socket."""
    kube, history = FakeKube(), cast(RunHistory, SessionsAlone(store))
    async with (
        served(build_app(store, history, kube)) as url,
        http(url) as client,
        direct(url) as access,
    ):
        yield cast(RunStore, StoreForPeople(store, client, PeoplesSessions(access, kube)))


@asynccontextmanager
async def direct(url: str) -> AsyncIterator[Direct]:
    trust = ssl.create_default_context(cadata=CA)
    async with httpx.AsyncClient(base_url=url, verify=trust, trust_env=False, timeout=30) as client:
        yield Direct(client)
