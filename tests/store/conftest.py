"""Every test that takes `store` runs on each implementation of the ports, and those of attempts and sessions over HTTP,
too; unless its module has a `store` of its own."""

import pytest

from pilothouse.store.ports import RunStore
from tests.store.fixtures import (
    database,
    empty_database,
    memory,
    memory_over_http,
    postgres,
    postgres_over_http,
    server_dsn,
)
from tests.store.lossy import desk

__all__ = [
    "database",
    "desk",
    "empty_database",
    "memory",
    "memory_over_http",
    "postgres",
    "postgres_over_http",
    "server_dsn",
    "store",
]

_STORES = ["memory", "postgres"]
_OVER_HTTP = ["memory_over_http", "postgres_over_http"]
_WITHOUT_GATEWAY = {
    "test_carriers",
    "test_leadership",
    "test_pages",
    "test_runs",
    "test_shutdown",
    "test_transitions",
}
"""Modules that only use the RunStore, which is the same with and without a gateway beside it, or what a gateway alone
uses."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames and not hasattr(metafunc.module, "store"):
        module = metafunc.module.__name__.rpartition(".")[2]
        stores = _STORES if module in _WITHOUT_GATEWAY else _STORES + _OVER_HTTP
        metafunc.parametrize("store", stores, indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest) -> RunStore:
    store: RunStore = request.getfixturevalue(request.param)
    return store
