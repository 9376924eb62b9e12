"""The read API on a real socket, over a database of the test's own and a cluster that the test makes."""

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import pytest

from pilothouse.gateway.app import build_app
from pilothouse.gateway.read.wire import TOKEN_HEADER
from pilothouse.store.history import RunHistory
from pilothouse.store.postgres import PostgresRunStore
from pilothouse.store.postgres.history import open_history
from tests.gateway.doubles import ANN, FakeKube
from tests.gateway.serving import CA, served
from tests.store.fixtures import database, postgres, server_dsn

__all__ = ["database", "postgres", "server_dsn"]

READER = ("get workflows", "list workflows", "get pods/log")


@dataclass(frozen=True)
class Reader:
    """A client of the read API with one token."""

    http: httpx.AsyncClient

    async def __call__(self, path: str, token: str = ANN, **query: Any) -> httpx.Response:
        """The answer to a path below `/read/v1/namespaces/`, as it comes through the API server."""
        return await self.http.get(f"/read/v1/namespaces/{path}", params=query, headers={TOKEN_HEADER: token})

    async def post(self, path: str, body: bytes, token: str = ANN) -> httpx.Response:
        """The answer to a write."""
        return await self.http.post(f"/read/v1/namespaces/{path}", content=body, headers={TOKEN_HEADER: token})

    async def items(self, path: str, **query: Any) -> list[dict[str, Any]]:
        answer = await self(path, **query)
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items


@pytest.fixture
def kube() -> FakeKube:
    """Ann may read the runs of `team-a`, and nobody anything else."""
    kube = FakeKube()
    kube.create_namespace("team-a")
    kube.grant("ann", "team-a", *READER)
    return kube


@pytest.fixture
def tenant(kube: FakeKube) -> UUID:
    return kube.namespaces["team-a"]


@pytest.fixture
async def history(database: str) -> AsyncIterator[RunHistory]:
    async with open_history(database) as history:
        yield history


@pytest.fixture
async def read(postgres: PostgresRunStore, history: RunHistory, kube: FakeKube) -> AsyncIterator[Reader]:
    trust = ssl.create_default_context(cadata=CA)
    async with (
        served(build_app(postgres, history, kube)) as url,
        httpx.AsyncClient(base_url=url, verify=trust, trust_env=False) as http,
    ):
        yield Reader(http)
