"""The desk: a run with one agent step in a store."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from pilothouse.store.ports import RunStore
from tests.agents.desk import Desk, Desks
from tests.store.fixtures import database, memory, postgres, server_dsn

__all__ = ["database", "desk", "desks", "memory", "postgres", "run_store", "server_dsn"]


@pytest.fixture
def run_store(request: pytest.FixtureRequest) -> RunStore:
    """In memory, unless a test's parameter names another implementation."""
    store: RunStore = request.getfixturevalue(getattr(request, "param", "memory"))
    return store


@pytest.fixture
async def desks(run_store: RunStore) -> AsyncIterator[Desks]:
    async with AsyncExitStack() as stack:
        yield Desks(run_store, stack)


@pytest.fixture
async def desk(desks: Desks) -> Desk:
    return await desks.new()
