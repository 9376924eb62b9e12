"""A store that is opened once its server is there: a gateway starts during an outage, and waits as everyone does."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, cast

from pilothouse.store.errors import StoreError, StoreUnavailable
from pilothouse.store.patient import back_off
from pilothouse.store.ports import RunStore

_log = logging.getLogger(__name__)


@asynccontextmanager
async def late_store(open_store: Callable[[], AbstractAsyncContextManager[RunStore]]) -> AsyncIterator[RunStore]:
    """The store; until it could be opened, every use of it raises StoreUnavailable."""
    late = _Late()
    async with AsyncExitStack() as held:
        opening = asyncio.create_task(_open(late, open_store, held), name="pilothouse-open-store")
        try:
            yield cast(RunStore, late)
        finally:
            opening.cancel()
            await asyncio.gather(opening, return_exceptions=True)


async def _open(
    late: "_Late", open_store: Callable[[], AbstractAsyncContextManager[RunStore]], held: AsyncExitStack
) -> None:
    """Tries until it succeeds. A store that must not be used is tried again, too: it may be migrated meanwhile."""
    tries = 0
    while late.store is None:
        try:
            late.store = await held.enter_async_context(open_store())
        except StoreError as error:
            late.reason = str(error)
            _log.warning("the store cannot be opened, trying again: %s", error)
            tries += 1
            await back_off(tries)
    _log.info("the store is open")


class _Late:
    def __init__(self) -> None:
        self.store: RunStore | None = None
        self.reason = "it is being opened"

    def __getattr__(self, name: str) -> Any:
        if self.store is None:
            raise StoreUnavailable(f"the store is not open yet: {self.reason}")
        return getattr(self.store, name)
