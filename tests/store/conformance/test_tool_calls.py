"""Tool calls: the intent is written before the effect, the result once after it."""

import asyncio
from dataclasses import replace
from uuid import uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.sessions import ToolOutcome
from pilothouse.records.values import JSON, BlobRef, Inline, ValueRefused, decode, digest
from pilothouse.store.errors import Conflict, NotFound
from pilothouse.store.ports import RunStore
from tests.store.samples import BUILD, attempt_of, refused, successor, tool_call, with_turn

TOOL_STARTED = NewEvent(EventType.TOOL_STARTED, BUILD, {"tool": "shell"})
TOOL_FINISHED = NewEvent(EventType.TOOL_FINISHED, BUILD, {"tool": "shell"})


async def test_an_intent_keeps_the_exact_bytes_of_its_arguments(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    arguments = bytes(range(256)) + b'{"a":"\\u0000"}'
    row = await attempt.intend(session, tool_call(turn, arguments=arguments), [TOOL_STARTED])
    assert (row.arguments, row.digest) == (arguments, digest(arguments))
    assert (row.turn, row.ordinal, row.call, row.tool) == (turn, 0, "call-1", "shell")
    assert (row.attempt, row.result, row.finished_at) == (attempt.ref.attempt, None, None)
    assert list(await attempt.tool_calls(session, turn)) == [row]
    assert (await store.events(attempt.ref.run))[-1].type is EventType.TOOL_STARTED


async def test_a_result_completes_its_intent(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    intended = await attempt.intend(session, tool_call(turn))
    message: dict[str, JSON] = {"role": "toolResult", "content": "a\0b", "isError": True}
    result = await attempt.record(session, ToolOutcome(turn, 0, message, is_error=True), [TOOL_FINISHED])
    [row] = await attempt.tool_calls(session, turn)
    assert row.finished_at is not None
    assert row.finished_at >= row.intended_at
    completed = {"result": result, "is_error": True, "finished_at": row.finished_at}
    assert row == replace(intended, **completed)  # type: ignore[arg-type]
    assert result == Inline(message)
    assert (await store.events(attempt.ref.run))[-1].type is EventType.TOOL_FINISHED


async def test_a_large_result_goes_to_a_blob(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn))
    message = {"content": "x" * 70_000}
    result = await attempt.record(session, ToolOutcome(turn, 0, message))
    assert isinstance(result, BlobRef)
    data = await attempt.get_blob(result.digest)
    assert (len(data), decode(data)) == (result.size, message)


async def test_calls_are_listed_by_their_place_in_the_turn(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    for ordinal in (2, 0, 1):
        await attempt.intend(session, tool_call(turn, ordinal=ordinal, call="same-id"))
    assert [row.ordinal for row in await attempt.tool_calls(session, turn)] == [0, 1, 2]
    assert list(await attempt.tool_calls(session, uuid4())) == []


async def test_an_intent_that_is_not_idempotent_is_written_once(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn))
    second = await successor(store, attempt, session)
    for call in (tool_call(turn), tool_call(turn, idempotent=True)):
        async with refused(store, attempt.ref.run, Conflict, "intended before"):
            await second.intend(session, call, [TOOL_STARTED])
    [row] = await second.tool_calls(session, turn)
    assert row.attempt == attempt.ref.attempt


@pytest.mark.feature("B44")
async def test_an_idempotent_intent_without_result_passes_to_the_next_attempt(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    call = tool_call(turn, idempotent=True)
    first = await attempt.intend(session, call)
    second = await successor(store, attempt, session)
    row = await second.intend(session, call)
    assert row == replace(first, attempt=second.ref.attempt, intended_at=row.intended_at)
    assert row.intended_at > first.intended_at


@pytest.mark.parametrize(
    "other", [{"call": "call-2"}, {"tool": "file_read"}, {"arguments": b"{}"}, {"idempotent": False}]
)
async def test_only_the_very_same_call_passes_on(store: RunStore, other: dict[str, object]) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn, idempotent=True))
    async with refused(store, attempt.ref.run, Conflict, "another call"):
        await attempt.intend(session, tool_call(turn, **({"idempotent": True} | other)))


async def test_a_call_with_a_result_is_not_intended_again(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    call = tool_call(turn, idempotent=True)
    await attempt.intend(session, call)
    await attempt.record(session, ToolOutcome(turn, 0, {"content": "done"}))
    async with refused(store, attempt.ref.run, Conflict, "has a result"):
        await attempt.intend(session, call, [TOOL_STARTED])


async def test_a_result_is_written_once(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    await attempt.intend(session, tool_call(turn))
    outcomes = (ToolOutcome(turn, 0, {"content": str(n)}) for n in range(10))
    verdicts = await asyncio.gather(
        *(attempt.record(session, outcome, [TOOL_FINISHED]) for outcome in outcomes), return_exceptions=True
    )
    [result] = [verdict for verdict in verdicts if not isinstance(verdict, BaseException)]
    assert sum(type(verdict) is Conflict for verdict in verdicts) == 9
    assert [row.result for row in await attempt.tool_calls(session, turn)] == [result]
    assert [event.type for event in await store.events(attempt.ref.run)].count(EventType.TOOL_FINISHED) == 1


async def test_a_result_needs_its_intent_and_an_intent_its_turn(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    async with refused(store, attempt.ref.run, NotFound, "never intended"):
        await attempt.record(session, ToolOutcome(turn, 0, {}), [TOOL_FINISHED])
    async with refused(store, attempt.ref.run, NotFound, "no entry"):
        await attempt.intend(session, tool_call(uuid4()), [TOOL_STARTED])
    async with refused(store, attempt.ref.run, NotFound, "no session"):
        await attempt.intend(uuid4(), tool_call(turn), [TOOL_STARTED])


async def test_names_that_no_column_can_hold_are_refused(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    for change in ({"call": "a\0"}, {"tool": "shell\ud800"}):
        async with refused(store, attempt.ref.run, ValueRefused, "must"):
            await attempt.intend(session, tool_call(turn, **change))
    await attempt.intend(session, tool_call(turn))
    async with refused(store, attempt.ref.run, ValueRefused, "inf"):
        await attempt.record(session, ToolOutcome(turn, 0, {"content": float("-inf")}))
