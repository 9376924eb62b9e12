"""An attempt's store through outages: a write whose fate was unknown is there exactly once."""

from collections.abc import Awaitable, Callable

import pytest

from pilothouse.records.queues import QueueName
from pilothouse.records.states import AttemptState
from pilothouse.records.values import INLINE_LIMIT, Inline
from pilothouse.store.errors import Conflict, Superseded
from pilothouse.store.ports import AttemptStore
from tests.store.lossy import MARK, REPLY, REQUEST, WRITES, Desk, Late
from tests.store.samples import message, replaced

losses = pytest.mark.parametrize(
    "lost", [[REQUEST], [REPLY], [REQUEST, REPLY], [REPLY, REPLY, REPLY]], ids=lambda lost: "-".join(lost)
)


@losses
async def test_an_append_is_there_once(desk: Desk, lost: list[str]) -> None:
    desk.lossy.script = [*lost]
    entries = [message("a"), message("b")]
    written = await desk.patient.append(desk.session, desk.turn, entries, [MARK], [desk.outcome()])
    session = await desk.direct.open_session(desk.session)
    assert list(written) == list(session.entries[1:])
    assert [entry.id for entry in written] == [entry.id for entry in entries]
    assert session.leaf == entries[-1].id
    [row] = await desk.direct.tool_calls(desk.session, desk.turn)
    assert row.result == Inline(dict(desk.outcome().message))
    assert await desk.marks() == 1
    assert desk.pauses == list(range(1, len(lost) + 1))


@losses
async def test_results_without_entries_are_there_once(desk: Desk, lost: list[str]) -> None:
    desk.lossy.script = [*lost]
    assert list(await desk.patient.append(desk.session, desk.turn, [], [MARK], [desk.outcome()])) == []
    [row] = await desk.direct.tool_calls(desk.session, desk.turn)
    assert row.is_error
    assert await desk.marks() == 1


async def test_events_alone_are_written_after_the_outage(desk: Desk) -> None:
    desk.lossy.script = [REQUEST]
    assert list(await desk.patient.append(desk.session, desk.turn, [], [MARK])) == []
    assert await desk.marks() == 1


@losses
@pytest.mark.parametrize("idempotent", [False, True])
async def test_an_intent_is_there_once(desk: Desk, lost: list[str], idempotent: bool) -> None:
    desk.lossy.script = [*lost]
    row = await desk.patient.intend(desk.session, desk.call(idempotent=idempotent), [MARK])
    assert row == (await desk.direct.tool_calls(desk.session, desk.turn))[1]
    assert (row.attempt, row.result) == (desk.ref.attempt, None)
    assert await desk.marks() == 1


@losses
@pytest.mark.parametrize("size", [1, INLINE_LIMIT + 1], ids=["inline", "blob"])
async def test_a_result_is_there_once(desk: Desk, lost: list[str], size: int) -> None:
    desk.lossy.script = [*lost]
    result = await desk.patient.record(desk.session, desk.outcome("x" * size), [MARK])
    assert [row.result for row in await desk.direct.tool_calls(desk.session, desk.turn)] == [result]
    assert await desk.marks() == 1


@losses
async def test_what_changes_nothing_when_repeated_is_repeated(desk: Desk, lost: list[str]) -> None:
    desk.lossy.script = [*lost]
    assert await desk.patient.open_session(desk.session) == await desk.direct.open_session(desk.session)
    desk.lossy.script = [*lost]
    blob = await desk.patient.put_blob(b"bytes")
    assert await desk.direct.get_blob(blob.digest) == b"bytes"
    assert desk.pauses == [*range(1, len(lost) + 1)] * 2


@pytest.mark.parametrize("lost", [[REQUEST], [REPLY], [REQUEST, REPLY]], ids=lambda lost: "-".join(lost))
async def test_an_attempt_ends_once_and_reads_as_superseded_where_the_reply_was_lost(
    desk: Desk, lost: list[str]
) -> None:
    desk.lossy.script = [*lost]
    finishing = desk.patient.finish(AttemptState.SUCCEEDED, {"text": Inline("done")})
    if REPLY in lost:
        with pytest.raises(Superseded):
            await finishing
    else:
        await finishing
    [attempt] = await desk.store.attempts(desk.ref.run)
    assert (attempt.state, attempt.outputs) == (AttemptState.SUCCEEDED, {"text": Inline("done")})


async def test_a_write_that_arrives_between_the_look_and_the_next_try_is_there_once(desk: Desk) -> None:
    def late() -> AttemptStore:
        return desk.made_patient(Late(desk.direct))

    [entry] = await late().append(desk.session, desk.turn, [message()], [MARK])
    intended = await late().intend(desk.session, desk.call(), [MARK])
    recorded = await late().record(desk.session, desk.outcome(), [MARK])
    assert (await desk.direct.open_session(desk.session)).entries[1:] == (entry,)
    first, second = await desk.direct.tool_calls(desk.session, desk.turn)
    assert (first.result, second) == (recorded, intended)
    assert await desk.marks() == 3


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("outage", [False, True])
async def test_a_superseded_attempt_writes_nothing_and_is_told_so(desk: Desk, name: str, outage: bool) -> None:
    async def supersede() -> None:
        await replaced(desk.store, desk.ref)

    desk.lossy.script, desk.meanwhile = [REQUEST] * outage, supersede
    if not outage:
        await supersede()
    with pytest.raises(Superseded):
        await WRITES[name](desk, desk.patient)
    assert desk.pauses == [1] * outage
    assert await desk.marks() == 0


@losses
async def test_messages_are_consumed_and_taken_back_once(desk: Desk, lost: list[str]) -> None:
    hint, other = await desk.steer("a hint"), await desk.steer("another")
    desk.lossy.script = [*lost]
    [entry] = await desk.patient.append(desk.session, desk.turn, [message()], [MARK], consumed=[hint.id])
    assert (await desk.direct.open_session(desk.session)).leaf == entry.id
    desk.lossy.script = [*lost]
    assert list(await desk.patient.clear(desk.session, [QueueName.STEER])) == [other]
    assert list(await desk.direct.queued(desk.session)) == []
    assert await desk.marks() == 1


async def test_what_an_earlier_attempt_wrote_is_not_ours_although_there_was_an_outage(desk: Desk) -> None:
    theirs = message("theirs")
    await desk.direct.append(desk.session, desk.turn, [theirs])
    await desk.direct.intend(desk.session, desk.call())
    await desk.direct.record(desk.session, desk.outcome("theirs"))
    next = await desk.successor()
    tries: list[Callable[[], Awaitable[object]]] = [
        lambda: next.patient.append(desk.session, desk.turn, [theirs], [MARK]),
        lambda: next.patient.intend(desk.session, desk.call(), [MARK]),
        lambda: next.patient.record(desk.session, desk.outcome(), [MARK]),
    ]
    for ours in tries:
        desk.lossy.script = [REQUEST]
        with pytest.raises(Conflict) as raised:
            await ours()
        assert raised.type is Conflict
    assert await desk.marks() == 0


async def test_another_writers_conflict_is_one_although_there_was_an_outage(desk: Desk) -> None:
    mine, hint = message("mine"), await desk.steer()
    tries: list[tuple[Callable[[], Awaitable[object]], Callable[[], Awaitable[object]]]] = [
        (
            lambda: desk.direct.append(desk.session, desk.turn, [mine]),
            lambda: desk.patient.append(desk.session, desk.turn, [mine], [MARK], [desk.outcome()]),
        ),
        (
            lambda: desk.direct.intend(desk.session, desk.call(ordinal=2, call="call-2")),
            lambda: desk.patient.intend(desk.session, desk.call(ordinal=2), [MARK]),
        ),
        (
            lambda: desk.direct.record(desk.session, desk.outcome("theirs")),
            lambda: desk.patient.record(desk.session, desk.outcome(), [MARK]),
        ),
        (
            lambda: desk.store.session_store().cancel(desk.ref.run.tenant, desk.session, [hint.id]),
            lambda: desk.patient.append(desk.session, mine.id, [message()], [MARK], consumed=[hint.id]),
        ),
    ]
    for other, ours in tries:
        desk.lossy.script, desk.meanwhile = [REQUEST], other
        with pytest.raises(Conflict) as raised:
            await ours()
        assert raised.type is Conflict
    assert await desk.marks() == 0


async def test_a_conflict_without_an_outage_is_raised_although_it_looks_like_ours(desk: Desk) -> None:
    await desk.direct.record(desk.session, desk.outcome())
    with pytest.raises(Conflict, match="has a result already"):
        await desk.patient.record(desk.session, desk.outcome())
    assert desk.told == []
