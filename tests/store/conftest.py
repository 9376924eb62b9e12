"""Every test that takes `store` runs on each implementation of the ports."""

import pytest

from pilothouse.store.ports import RunStore
from tests.store.fixtures import database, empty_database, memory, postgres, server_dsn
from tests.store.lossy import desk

__all__ = ["database", "desk", "empty_database", "memory", "postgres", "server_dsn", "store"]


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> RunStore:
    store: RunStore = request.getfixturevalue(request.param)
    return store
