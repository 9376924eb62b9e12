"""A gateway starts while its database is away, and serves once it is there."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pilothouse.gateway import late
from pilothouse.gateway.late import late_store
from pilothouse.store.errors import StoreError, StoreUnavailable, StoreUnusable
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.ports import RunStore


class Database:
    """Cannot be opened as often as `errors` says, then can."""

    def __init__(self, *errors: StoreError) -> None:
        self.errors = list(errors)
        self.store = MemoryRunStore()
        self.is_open = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[RunStore]:
        if self.errors:
            raise self.errors.pop(0)
        self.is_open = True
        yield self.store
        self.is_open = False


class Pauses:
    """The pauses between two tries, which end when a test says so."""

    def __init__(self) -> None:
        self.tries: list[int] = []
        self.begun, self.over = asyncio.Event(), asyncio.Event()

    async def __call__(self, tries: int) -> None:
        self.tries.append(tries)
        self.begun.set()
        await self.over.wait()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> Pauses:
    pauses = Pauses()
    monkeypatch.setattr(late, "back_off", pauses)
    return pauses


async def opened(store: RunStore) -> None:
    while True:
        try:
            await store.installation()
        except StoreUnavailable:
            await asyncio.sleep(0)
        else:
            return


async def test_it_waits_for_a_database_that_is_away_or_not_migrated_yet(pauses: Pauses) -> None:
    database = Database(StoreUnavailable("away"), StoreUnusable("the tables are not there"))
    async with late_store(database.open) as store:
        await pauses.begun.wait()
        with pytest.raises(StoreUnavailable, match="not open yet: away"):
            await store.installation()
        pauses.over.set()
        await opened(store)
        assert await store.installation() == await database.store.installation()
        assert pauses.tries == [1, 2]
        assert database.is_open
    assert not database.is_open


async def test_it_ends_at_once_while_it_waits(pauses: Pauses) -> None:
    async with late_store(Database(StoreUnavailable("away")).open):
        await pauses.begun.wait()
