"""A cluster in memory before the operator, with each kind of store behind it."""

from collections.abc import AsyncIterator

import pytest

from pilothouse.store.ports import RunStore
from tests.operator.clock import Clock, clock
from tests.operator.desk import Desk, desk_on
from tests.store.fixtures import database, empty_database, memory, postgres, server_dsn

__all__ = ["clock", "database", "empty_database", "memory", "postgres", "server_dsn"]


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> RunStore:
    store: RunStore = request.getfixturevalue(request.param)
    return store


@pytest.fixture
async def desk(store: RunStore, clock: Clock) -> AsyncIterator[Desk]:
    async with desk_on(store, clock) as desk:
        yield desk
