"""Messages for an agent: accepted for good or refused, delivered once, in the order of acceptance."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.sessions import ToolOutcome
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Conflict, InvalidState, NotFound, QueueNotEmpty, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from tests.store.samples import (
    BUILD,
    attempt_of,
    message,
    open_attempt,
    refused,
    replaced,
    successor,
    tool_call,
    with_turn,
)

STEER, FOLLOW_UP, NEXT_TURN = QueueName.STEER, QueueName.FOLLOW_UP, QueueName.NEXT_TURN
TURN = NewEvent(EventType.TURN_RECORDED, BUILD, {"turn": 1})

for_the_one_at_work = pytest.mark.parametrize("queue", [STEER, FOLLOW_UP])


async def say(store: RunStore, attempt: AttemptStore, session: UUID, queue: QueueName, text: str = "hi") -> QueueItem:
    said = {"role": "user", "content": text}
    return await store.session_store().enqueue(attempt.ref.run.tenant, session, queue, said)


async def at_work(store: RunStore) -> tuple[AttemptStore, UUID, UUID]:
    attempt = await attempt_of(store)
    return attempt, *await with_turn(attempt)


@pytest.mark.feature("A31")
@pytest.mark.feature("A69")
async def test_messages_wait_in_the_order_of_acceptance(store: RunStore) -> None:
    attempt, session, _ = await at_work(store)
    items = [
        await say(store, attempt, session, queue, f"é\0 {queue}") for queue in (STEER, NEXT_TURN, FOLLOW_UP, STEER)
    ]
    assert [item.queue for item in items] == [STEER, NEXT_TURN, FOLLOW_UP, STEER]
    assert [item.seq for item in items] == [1, 2, 3, 4]
    assert items[1].message == {"role": "user", "content": "é\0 nextTurn"}
    assert list(await attempt.queued(session)) == items
    assert list(await store.session_store().queued(attempt.ref.run.tenant, session)) == items


@pytest.mark.feature("A69")
async def test_a_message_is_delivered_with_the_entry_that_holds_it_and_once(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    first, second = [await say(store, attempt, session, STEER, text) for text in ("one", "two")]
    [entry] = await attempt.append(session, turn, [message("one")], consumed=[first.id])
    assert list(await attempt.queued(session)) == [second]
    for consumed in ([first.id], [second.id, first.id], [uuid4()], [second.id, second.id]):
        async with refused(store, attempt.ref.run, Conflict, "not all these messages wait"):
            await attempt.append(session, entry.id, [message()], [TURN], consumed=consumed)
    assert list(await attempt.queued(session)) == [second]


async def test_a_message_still_waits_where_its_entry_was_refused(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    item = await say(store, attempt, session, STEER)
    for leaf, outcomes in [(uuid4(), ()), (turn, [ToolOutcome(turn, 7)])]:
        with pytest.raises((Conflict, NotFound)):
            await attempt.append(session, leaf, [message()], (), outcomes, [item.id])
    assert list(await attempt.queued(session)) == [item]


async def test_a_message_of_another_session_is_not_delivered(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    other, _ = await with_turn(attempt)
    item = await say(store, attempt, other, STEER)
    async with refused(store, attempt.ref.run, Conflict):
        await attempt.append(session, turn, [message()], consumed=[item.id])
    assert list(await attempt.queued(other)) == [item]
    assert list(await attempt.queued(session)) == []


@pytest.mark.feature("A69")
async def test_one_of_many_deliveries_has_a_message(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    item = await say(store, attempt, session, STEER)
    writes = (attempt.append(session, turn, [message(str(n))], consumed=[item.id]) for n in range(10))
    taking_back = store.session_store().cancel(attempt.ref.run.tenant, session, [item.id])
    *verdicts, cancelled = await asyncio.gather(*writes, taking_back, return_exceptions=True)
    delivered = sum(not isinstance(verdict, BaseException) for verdict in verdicts)
    assert delivered + len(cancelled if isinstance(cancelled, list) else []) == 1
    assert list(await attempt.queued(session)) == []


@pytest.mark.feature("A69")
async def test_what_waits_survives_the_attempt_and_is_the_next_ones(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    items = [await say(store, attempt, session, queue) for queue in QueueName]
    second = await successor(store, attempt, session)
    assert list(await second.queued(session)) == items
    await second.append(session, turn, [message()], consumed=[item.id for item in items])
    assert list(await second.queued(session)) == []


@for_the_one_at_work
async def test_a_message_for_the_one_at_work_is_refused_where_nobody_is(store: RunStore, queue: QueueName) -> None:
    attempt, session, _ = await at_work(store)
    await attempt.finish(AttemptState.FAILED)
    with pytest.raises(InvalidState, match="no attempt is at work") as raised:
        await say(store, attempt, session, queue)
    assert raised.type is InvalidState
    assert list(await store.session_store().queued(attempt.ref.run.tenant, session)) == []


async def test_an_attempt_is_at_work_once_it_has_opened_the_session(store: RunStore) -> None:
    attempt, session, _ = await at_work(store)
    next = store.attempt_store(await replaced(store, attempt.ref))
    with pytest.raises(InvalidState):
        await say(store, attempt, session, STEER)
    await next.open_session(session)
    item = await say(store, attempt, session, STEER)
    assert list(await next.queued(session)) == [item]


@pytest.mark.feature("A33")
async def test_a_message_for_the_next_turn_is_accepted_at_any_time(store: RunStore) -> None:
    attempt, session, _ = await at_work(store)
    first = await say(store, attempt, session, NEXT_TURN)
    await attempt.finish(AttemptState.SUCCEEDED)
    second = await say(store, attempt, session, NEXT_TURN)
    assert list(await store.session_store().queued(attempt.ref.run.tenant, session)) == [first, second]


async def test_the_same_message_is_accepted_once_whatever_became_of_it(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    said: dict[str, Any] = {"content": ["a", 1, None]}
    item = await outside.enqueue(tenant, session, STEER, said, id := uuid4())
    assert item.id == id
    assert await outside.enqueue(tenant, session, STEER, said, id) == item
    assert list(await attempt.queued(session)) == [item]
    await attempt.append(session, turn, [message()], consumed=[id])
    await attempt.finish(AttemptState.SUCCEEDED)
    assert await outside.enqueue(tenant, session, STEER, said, id) == item
    assert list(await outside.queued(tenant, session)) == []
    others: list[tuple[QueueName, dict[str, Any]]] = [(FOLLOW_UP, said), (NEXT_TURN, said), (STEER, {"content": "b"})]
    for queue, other in others:
        with pytest.raises(Conflict, match=f"another message with the id {id}"):
            await outside.enqueue(tenant, session, queue, other, id)


async def test_many_at_once_are_accepted_in_some_order(store: RunStore) -> None:
    attempt, session, _ = await at_work(store)
    outside, tenant, id = store.session_store(), attempt.ref.run.tenant, uuid4()
    ids = [uuid4() for _ in range(10)] + [id] * 5
    items = await asyncio.gather(*(outside.enqueue(tenant, session, STEER, {"n": 1}, id) for id in ids))
    assert len({item.seq for item in items}) == 11
    waiting = await attempt.queued(session)
    assert [item.seq for item in waiting] == list(range(1, 12))


@pytest.mark.feature("A33")
async def test_an_abort_takes_back_what_it_names_and_no_more(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    steer, follow_up, next_turn = [await say(store, attempt, session, queue) for queue in QueueName]
    delivered = await say(store, attempt, session, STEER)
    [entry] = await attempt.append(session, turn, [message()], consumed=[delivered.id])
    assert list(await attempt.clear(session, [])) == []
    cleared = await attempt.clear(session, [STEER, FOLLOW_UP], abort := uuid4())
    assert list(cleared) == [steer, follow_up]
    assert list(await attempt.queued(session)) == [next_turn]
    assert list(await attempt.clear(session, [STEER, FOLLOW_UP], abort)) == [steer, follow_up], "the same abort again"
    assert list(await attempt.clear(session, [STEER, FOLLOW_UP])) == []
    with pytest.raises(Conflict):
        await attempt.append(session, entry.id, [message()], consumed=[steer.id])


async def test_an_item_is_taken_back_unless_it_was_delivered(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    first, second, third = [await say(store, attempt, session, STEER, text) for text in ("one", "two", "three")]
    await attempt.append(session, turn, [message()], consumed=[first.id])
    ids = [second.id, first.id, uuid4()]
    assert list(await outside.cancel(tenant, session, ids)) == [second]
    assert list(await outside.cancel(tenant, session, ids)) == [second], "the same again"
    assert list(await attempt.queued(session)) == [third]


@for_the_one_at_work
async def test_an_attempt_does_not_succeed_past_a_message_for_it(store: RunStore, queue: QueueName) -> None:
    attempt, session, turn = await at_work(store)
    item = await say(store, attempt, session, queue)
    async with refused(store, attempt.ref.run, QueueNotEmpty, "messages wait for attempt"):
        await attempt.finish(AttemptState.SUCCEEDED)
    await attempt.append(session, turn, [message()], consumed=[item.id])
    await attempt.finish(AttemptState.SUCCEEDED)


@pytest.mark.parametrize("state", [AttemptState.FAILED, AttemptState.CANCELLED, AttemptState.RELEASED])
async def test_any_other_end_leaves_messages_waiting(store: RunStore, state: AttemptState) -> None:
    attempt, session, _ = await at_work(store)
    item = await say(store, attempt, session, STEER)
    await attempt.finish(state)
    assert list(await store.session_store().queued(attempt.ref.run.tenant, session)) == [item]


async def test_messages_of_sessions_that_others_have_keep_nobody(store: RunStore) -> None:
    attempt, session, _ = await at_work(store)
    await say(store, attempt, session, STEER)
    other = await attempt_of(store, attempt.ref.run.tenant)
    await with_turn(other)
    await other.finish(AttemptState.SUCCEEDED)
    next = store.attempt_store(await replaced(store, attempt.ref))
    await next.finish(AttemptState.SUCCEEDED)


async def test_a_late_message_is_refused_or_keeps_the_attempt_a_hundred_times(store: RunStore) -> None:
    attempt, session, leaf = await at_work(store)
    for _ in range(100):
        ended, said = await asyncio.gather(
            attempt.finish(AttemptState.SUCCEEDED), say(store, attempt, session, STEER), return_exceptions=True
        )
        if isinstance(said, QueueItem):
            assert type(ended) is QueueNotEmpty
            [entry] = await attempt.append(session, leaf, [message()], consumed=[said.id])
            leaf = entry.id
        else:
            assert (ended, type(said)) == (None, InvalidState)
            next = await open_attempt(store, attempt.ref.run, after=attempt.ref.fence)
            attempt = store.attempt_store(next)
            await attempt.open_session(session)
        assert list(await attempt.queued(session)) == []


async def test_only_who_has_the_session_sees_and_changes_its_queues(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    item = await say(store, attempt, session, STEER)
    other = await attempt_of(store, attempt.ref.run.tenant)
    for use in (
        other.queued(session),
        other.clear(session, list(QueueName)),
        other.append(session, turn, [message()], consumed=[item.id]),
        attempt.queued(uuid4()),
        attempt.clear(uuid4(), list(QueueName)),
    ):
        with pytest.raises(NotFound, match="no session"):
            await use
    assert list(await attempt.queued(session)) == [item]


async def test_a_message_that_cannot_be_stored_is_refused(store: RunStore) -> None:
    attempt, session, _ = await at_work(store)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    with pytest.raises(ValueRefused, match="`message"):
        await outside.enqueue(tenant, session, STEER, {"content": float("nan")})
    with pytest.raises(NotFound, match="this tenant has no session"):
        await outside.enqueue(tenant, uuid4(), NEXT_TURN, {})
    assert list(await attempt.queued(session)) == []


async def test_the_queue_and_the_results_of_a_turn_go_together(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    await attempt.intend(session, tool_call(turn))
    item = await say(store, attempt, session, STEER)
    await attempt.append(session, turn, [message()], [TURN], [ToolOutcome(turn, 0)], [item.id])
    [call] = await attempt.tool_calls(session, turn)
    assert call.result is not None
    assert list(await attempt.queued(session)) == []


async def test_an_attempt_that_is_over_delivers_nothing(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    item = await say(store, attempt, session, STEER)
    next = await successor(store, attempt, session)
    async with refused(store, attempt.ref.run, Superseded):
        await attempt.append(session, turn, [message()], consumed=[item.id])
    assert list(await next.queued(session)) == [item]


@pytest.mark.feature("A69")
async def test_an_append_tells_whether_anything_waits_then(store: RunStore) -> None:
    attempt, session, turn = await at_work(store)
    first = await attempt.append(session, turn, [message("one")])
    assert not first.waiting
    item = await say(store, attempt, session, STEER)
    second = await attempt.append(session, first[-1].id, [message("two")])
    assert second.waiting
    third = await attempt.append(session, second[-1].id, [message("three")], consumed=[item.id])
    assert not third.waiting
    await say(store, attempt, session, NEXT_TURN)
    assert (await attempt.append(session, third[-1].id, [message("four")])).waiting
