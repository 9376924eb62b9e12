"""The end of a turn: results of its calls and their messages, written in one transaction or not at all."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.sessions import NewEntry, ToolOutcome
from pilothouse.records.values import BlobRef, Inline, ValueRefused, decode, digest, encode
from pilothouse.store.errors import Conflict, NotFound, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from tests.store.samples import BUILD, attempt_of, message, refused, successor, tool_call, with_turn

FINISHED = NewEvent(EventType.TOOL_FINISHED, BUILD, {"tool": "shell"})


async def with_calls(store: RunStore, count: int = 2) -> tuple[AttemptStore, UUID, UUID]:
    """A turn with so many intended calls."""
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    for ordinal in range(count):
        await attempt.intend(session, tool_call(turn, ordinal=ordinal))
    return attempt, session, turn


def result(turn: UUID, ordinal: int = 0, content: Any = "done") -> ToolOutcome:
    return ToolOutcome(turn, ordinal, {"content": content}, is_error=ordinal == 1)


async def test_results_and_messages_are_written_together(store: RunStore) -> None:
    attempt, session, turn = await with_calls(store)
    outcomes = [result(turn, 1, "a\0b"), result(turn, 0)]
    entries = await attempt.append(session, turn, [message("one"), message("two")], [FINISHED, FINISHED], outcomes)
    first, second = await attempt.tool_calls(session, turn)
    assert (first.result, first.is_error) == (Inline({"content": "done"}), False)
    assert (second.result, second.is_error) == (Inline({"content": "a\0b"}), True)
    assert first.finished_at is not None
    opened = await attempt.open_session(session)
    assert (opened.leaf, opened.entries[1:]) == (entries[-1].id, tuple(entries))
    assert [event.seq for event in await store.events(attempt.ref.run) if event.type is FINISHED.type] == [2, 3]


async def test_a_large_result_goes_to_a_blob_here_too(store: RunStore) -> None:
    attempt, session, turn = await with_calls(store)
    large = "\0é" + "x" * 70_000
    await attempt.append(session, turn, [message()], (), [result(turn, 0, large), result(turn, 1, "small")])
    first, second = await attempt.tool_calls(session, turn)
    assert isinstance(first.result, BlobRef)
    data = await attempt.get_blob(first.result.digest)
    assert (len(data), decode(data)) == (first.result.size, {"content": large})
    assert second.result == Inline({"content": "small"})


Write = tuple[UUID | None, list[NewEntry], list[ToolOutcome]]
"""The leaf, the entries, and what is written beside the large result of the first call."""

BROKEN: dict[str, tuple[type[Exception], str, Callable[[UUID], Write]]] = {
    "a leaf that has moved": (Conflict, "leaf of session", lambda turn: (uuid4(), [message()], [])),
    "an entry that is there": (Conflict, "same id", lambda turn: (turn, [NewEntry(turn, "message", {})], [])),
    "a second result": (Conflict, "has a result", lambda turn: (turn, [message()], [result(turn, 1), result(turn, 1)])),
    "no intent": (NotFound, "call 7 .* never intended", lambda turn: (turn, [message()], [result(turn, 7)])),
    "no such turn": (NotFound, "never intended", lambda turn: (turn, [message()], [result(uuid4())])),
    "a result that no store takes": (
        ValueRefused,
        "inf",
        lambda turn: (turn, [message()], [result(turn, 1, float("inf"))]),
    ),
    "a message that no store takes": (
        ValueRefused,
        "keys must be strings",
        lambda turn: (turn, [NewEntry(uuid4(), "message", {"content": {1: 1}})], []),
    ),
}


@pytest.mark.parametrize(("error", "says", "write"), BROKEN.values(), ids=BROKEN.keys())
async def test_neither_is_written_where_one_is_refused(
    store: RunStore, error: type[Exception], says: str, write: Callable[[UUID], Write]
) -> None:
    attempt, session, turn = await with_calls(store)
    leaf, entries, others = write(turn)
    large = "x" * 70_000
    async with refused(store, attempt.ref.run, error, says):
        await attempt.append(session, leaf, entries, [FINISHED], [result(turn, 0, large), *others])
    assert [row.result for row in await attempt.tool_calls(session, turn)] == [None, None]
    with pytest.raises(NotFound):
        await attempt.get_blob(digest(encode({"content": large}).encode()))


async def test_a_recorded_result_is_not_written_again_with_the_messages(store: RunStore) -> None:
    attempt, session, turn = await with_calls(store)
    recorded = await attempt.record(session, result(turn))
    async with refused(store, attempt.ref.run, Conflict, "call 0 of turn .* has a result"):
        await attempt.append(session, turn, [message()], [FINISHED], [result(turn, 1), result(turn)])
    [first, second] = await attempt.tool_calls(session, turn)
    assert (first.result, second.result) == (recorded, None)


async def test_results_need_no_messages(store: RunStore) -> None:
    attempt, session, turn = await with_calls(store)
    assert list(await attempt.append(session, turn, [], (), [result(turn)])) == []
    first, second = await attempt.tool_calls(session, turn)
    assert (first.result, second.result) == (Inline({"content": "done"}), None)


async def test_a_superseded_attempt_writes_neither(store: RunStore) -> None:
    attempt, session, turn = await with_calls(store)
    newer = await successor(store, attempt, session)
    async with refused(store, attempt.ref.run, Superseded):
        await attempt.append(session, turn, [message()], [FINISHED], [result(turn)])
    assert [row.result for row in await newer.tool_calls(session, turn)] == [None, None]
    await newer.append(session, turn, [message()], [FINISHED], [result(turn)])
