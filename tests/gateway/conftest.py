"""A gateway with one Pod before it; over the store in memory, unless a test asks for `postgres`."""

from collections.abc import AsyncIterator

import pytest

from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.ports import RunStore
from tests.gateway.desk import Desk, desk_on
from tests.store.fixtures import database, postgres, server_dsn

__all__ = ["database", "postgres", "server_dsn"]


@pytest.fixture
def behind(request: pytest.FixtureRequest) -> RunStore:
    """The store behind the gateway."""
    name = getattr(request, "param", "memory")
    store: RunStore = MemoryRunStore() if name == "memory" else request.getfixturevalue(name)
    return store


@pytest.fixture
async def desk(behind: RunStore) -> AsyncIterator[Desk]:
    async with desk_on(behind) as desk:
        yield desk
