"""How an attempt's store waits for its server: in pauses, telling of it once, and not for who must end."""

import asyncio

import pytest

from pilothouse.store.errors import NotFound, StoreUnavailable
from pilothouse.store.faults import faulty
from pilothouse.store.patient import Outages, back_off, patient
from tests.store.lossy import REQUEST, WRITES, Desk, Once
from tests.store.samples import everything


async def test_reads_wait_too(desk: Desk) -> None:
    store = desk.made_patient(Once(desk.direct))
    assert len(await store.tool_calls(desk.session, desk.turn)) == 1
    with pytest.raises(NotFound):
        await store.get_blob("sha256:none")
    assert desk.pauses == [1, 1]
    assert len(desk.told) == 4, "a refusal is an answer"


async def test_an_outage_is_told_once_however_many_wait(desk: Desk) -> None:
    outages = Outages(desk.told.append, desk.pause)
    store = patient(faulty(desk.store, desk.lossy).attempt_store(desk.ref), outages)
    together = asyncio.Barrier(3)
    desk.meanwhile = together.wait
    desk.lossy.script = [REQUEST] * 6
    await asyncio.gather(*(store.put_blob(bytes([number])) for number in range(3)))
    assert desk.told == ["the store is away, agents wait: the server is away", "the store is back, agents go on"]
    desk.lossy.script = [REQUEST] * 3
    await asyncio.gather(*(store.put_blob(bytes([number])) for number in range(3)))
    assert len(desk.told) == 4, "the next outage is another one"


@pytest.mark.parametrize("name", WRITES)
async def test_a_cancellation_ends_the_wait_at_once(desk: Desk, name: str) -> None:
    before = await everything(desk.store, desk.ref.run)
    waits, for_ever = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        waits.set()
        await for_ever.wait()

    desk.lossy.script, desk.meanwhile = [REQUEST], wait
    writing = asyncio.ensure_future(WRITES[name](desk, desk.patient))
    await waits.wait()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await everything(desk.store, desk.ref.run) == before


async def test_a_task_that_was_asked_to_end_writes_once_more_and_does_not_wait(desk: Desk) -> None:
    begun = asyncio.Event()

    async def agent() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            with pytest.raises(StoreUnavailable):
                await desk.patient.record(desk.session, desk.outcome())
            await desk.patient.record(desk.session, desk.outcome())

    desk.lossy.script = [REQUEST]
    task = asyncio.create_task(agent())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert desk.pauses == []
    [row] = await desk.direct.tool_calls(desk.session, desk.turn)
    assert row.result is not None


async def test_pauses_grow_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    for tries in (1, 2, 3, 7, 100_000):
        await back_off(tries)
    for seconds, longest in zip(slept, (0.1, 0.2, 0.4, 5.0, 5.0), strict=True):
        assert longest / 2 <= seconds <= longest
