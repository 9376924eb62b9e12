"""The events of a run, read to the last one: those that are recorded, and those still to come."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

from pilothouse.cli.reading import RunReader
from pilothouse.records.events import Event, EventType
from pilothouse.records.runs import RunRef
from pilothouse.store.errors import StoreUnavailable

ENDS = frozenset({EventType.RUN_SUCCEEDED, EventType.RUN_FAILED, EventType.RUN_CANCELLED})
"""The events that end a run; one of them is its last."""

SWEEP = 10.0
"""Seconds after which events are looked for although nothing told of any."""

OUTAGE_PAUSE = 1.0
"""Seconds between two tries while the store is away."""

_PAGE = 1_000


async def recorded(store: RunReader, run: RunRef, after: int = 0) -> AsyncIterator[Event]:
    """The events after `after` that are recorded now."""
    while page := await store.events(run, after, _PAGE):
        for event in page:
            yield event
        if len(page) < _PAGE:
            return
        after = page[-1].seq


async def follow(store: RunReader, run: RunRef, after: int = 0) -> AsyncIterator[Event]:
    """The events after `after` as they are recorded, up to the one that ends the run. Waits through an outage."""
    while True:
        try:
            async with store.changes(run) as changes:
                async for event in recorded(store, run, after):
                    after = event.seq
                    yield event
                    if event.type in ENDS:
                        return
                with suppress(TimeoutError):
                    async with asyncio.timeout(SWEEP):
                        await anext(changes)
        except StoreUnavailable:
            await asyncio.sleep(OUTAGE_PAUSE)
