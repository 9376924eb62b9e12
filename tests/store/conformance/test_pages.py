"""Long answers in parts: together they are the whole, none is larger than was asked for, and each is refused as the
whole is."""

from base64 import b64decode
from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import NewEntry, ToolOutcome
from pilothouse.records.values import decode
from pilothouse.store.errors import Conflict, NotFound, Superseded
from pilothouse.store.pages import Page
from pilothouse.store.ports import PagedAttemptStore, RunStore
from pilothouse.store.queue_rows import item_of
from pilothouse.store.rows import Row, entry_of, tool_call_of
from tests.store.samples import created, open_attempt, replaced, tool_call, with_turn

Read = Callable[[int, int], Awaitable[Page]]

SIZES = [1, 40, 100, 250, 1_000]


async def attempt_of(store: RunStore, tenant: UUID | None = None) -> PagedAttemptStore:
    return store.attempt_store(await open_attempt(store, await created(store, tenant)))


async def filled(attempt: PagedAttemptStore) -> UUID:
    """A session with small and larger entries."""
    session, leaf = uuid4(), None
    await attempt.open_session(session)
    for text in ("x" * 100, "", "é\0" + "y" * 189, "z"):
        entry = NewEntry(uuid4(), "ab", {"t": text})
        await attempt.append(session, leaf, [entry])
        leaf = entry.id
    return session


def size_of(row: Row, columns: tuple[str, ...]) -> int:
    return sum(len(row[column] or "") for column in columns)


async def walked(read: Read, size: int, column: str, start: int, columns: tuple[str, ...]) -> tuple[list[Row], Page]:
    """All rows and the last page, in steps of `size` or of what the next row takes."""
    found: list[Row] = []
    after, asked = start, size
    while True:
        page = await read(after, asked)
        assert sum(size_of(row, columns) for row in page.rows) <= asked
        found += page.rows
        if not page.next:
            return found, page
        after, asked = (found[-1][column] if found else start), max(size, page.next)


@pytest.mark.parametrize("size", SIZES)
async def test_the_pages_of_a_session_are_the_session(store: RunStore, size: int) -> None:
    attempt = await attempt_of(store)
    session = await filled(attempt)
    whole = await attempt.open_session(session)
    rows, last = await walked(
        lambda after, size: attempt.session_page(session, after, size), size, "seq", 0, ("type", "body")
    )
    assert tuple(map(entry_of, rows)) == whole.entries
    assert last.leaf == whole.leaf


async def test_a_page_holds_what_fits_and_says_what_the_next_row_takes(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await filled(attempt)
    sizes = [size_of(row, ("type", "body")) for row in (await attempt.session_page(session, 0, 10_000)).rows]
    for asked, count in [(0, 0), (sizes[0] - 1, 0), (sizes[0], 1), (sum(sizes[:2]), 2), (sum(sizes) - 1, 3)]:
        page = await attempt.session_page(session, 0, asked)
        assert (len(page.rows), page.next) == (count, sizes[count])
    page = await attempt.session_page(session, 0, sum(sizes))
    assert (len(page.rows), page.next) == (4, 0)


async def test_the_first_page_creates_a_session_and_later_ones_create_none(store: RunStore) -> None:
    attempt, session = await attempt_of(store), uuid4()
    with pytest.raises(Conflict):
        await attempt.session_page(session, 1, 100)
    assert await attempt.session_page(session, 0, 100) == Page([], 0, None)
    assert [found.id for found in await store.sessions(attempt.ref.run)] == [session]


@pytest.mark.parametrize("size", SIZES)
async def test_the_pages_of_a_turn_are_its_calls(store: RunStore, size: int) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    for ordinal, arguments in enumerate([b"{}", b'{"a":"' + b"x" * 150 + b'"}', b"", b"\xff\0"]):
        await attempt.intend(session, tool_call(turn, ordinal=ordinal, arguments=arguments))
    await attempt.record(session, ToolOutcome(turn, 1, {"said": "y" * 60}))
    rows, _ = await walked(
        lambda after, size: attempt.call_page(session, turn, after, size),
        size,
        "ordinal",
        -1,
        ("call", "tool", "arguments", "result"),
    )
    found = [tool_call_of(row | {"arguments": b64decode(row["arguments"], validate=True)}) for row in rows]
    assert found == await attempt.tool_calls(session, turn)
    assert [decode(row["result"]) for row in rows if row["result"]] == [{"value": {"said": "y" * 60}}]


@pytest.mark.parametrize("size", SIZES)
async def test_the_pages_of_a_queue_are_its_items(store: RunStore, size: int) -> None:
    attempt, abort = await attempt_of(store), uuid4()
    session, _ = await with_turn(attempt)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    for queue, text in [("steer", "x" * 100), ("nextTurn", ""), ("steer", "é\0" + "y" * 189), ("followUp", "z")]:
        await outside.enqueue(tenant, session, QueueName(queue), {"content": text})
    waiting = await attempt.queued(session)
    columns = ("queue", "message")
    rows, _ = await walked(lambda after, size: attempt.queue_page(session, after, size), size, "seq", 0, columns)
    assert list(map(item_of, rows)) == list(waiting)
    rows, _ = await walked(
        lambda after, size: attempt.clear_page(session, [QueueName.STEER], abort, after, size), size, "seq", 0, columns
    )
    assert list(map(item_of, rows)) == [item for item in waiting if item.queue is QueueName.STEER]
    assert [item.queue for item in await attempt.queued(session)] == [QueueName.NEXT_TURN, QueueName.FOLLOW_UP]


@pytest.mark.parametrize("size", SIZES)
async def test_the_pages_of_a_session_are_the_same_from_outside(store: RunStore, size: int) -> None:
    attempt = await attempt_of(store)
    session = await filled(attempt)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    for text in ("x" * 100, "", "é\0" + "y" * 189, "z"):
        await outside.enqueue(tenant, session, QueueName.STEER, {"content": text})
    rows, _ = await walked(
        lambda after, size: outside.entry_page(tenant, session, after, 10, size), size, "seq", 0, ("type", "body")
    )
    assert list(map(entry_of, rows)) == list(await outside.entries(tenant, session))
    waiting, columns = list(await outside.queued(tenant, session)), ("queue", "message")
    rows, _ = await walked(lambda after, size: outside.item_page(tenant, session, after, size), size, "seq", 0, columns)
    assert list(map(item_of, rows)) == waiting
    taken = [item.id for item in waiting[1:]]
    rows, _ = await walked(
        lambda after, size: outside.cancelled_page(tenant, session, taken, after, size), size, "seq", 0, columns
    )
    assert list(map(item_of, rows)) == waiting[1:]
    assert list(await outside.queued(tenant, session)) == waiting[:1]
    assert await outside.item_page(tenant, await outside.import_session(tenant, "none", []), 0, size) == Page([], 0)


async def test_a_page_of_entries_ends_at_its_limit(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session = await filled(attempt)
    outside, tenant = store.session_store(), attempt.ref.run.tenant
    page = await outside.entry_page(tenant, session, 1, 2, 10_000)
    assert ([row["seq"] for row in page.rows], page.next) == ([2, 3], 0)
    first = (await outside.entry_page(tenant, session, 0, 1, 10_000)).rows[0]
    page = await outside.entry_page(tenant, session, 0, 2, size_of(first, ("type", "body")))
    assert ([row["seq"] for row in page.rows], page.next) == ([1], 2 + len('{"t":""}'))


async def test_no_page_of_a_session_is_another_tenants(store: RunStore) -> None:
    attempt = await attempt_of(store)
    session, outside = await filled(attempt), store.session_store()
    [item] = [await outside.enqueue(attempt.ref.run.tenant, session, QueueName.STEER, {})]
    for use in (
        outside.entry_page(uuid4(), session, 0, 10, 1_000),
        outside.item_page(uuid4(), session, 0, 1_000),
        outside.cancelled_page(uuid4(), session, [item.id], 0, 1_000),
    ):
        with pytest.raises(NotFound, match="this tenant has no session"):
            await use
    assert list(await outside.queued(attempt.ref.run.tenant, session)) == [item]


async def test_the_pieces_of_a_blob_are_the_blob(store: RunStore) -> None:
    attempt, data = await attempt_of(store), bytes(range(250)) * 3
    ref = await attempt.put_blob(data)
    pieces = [await attempt.blob_piece(ref.digest, start, 100) for start in range(0, len(data), 100)]
    assert b"".join(piece.data for piece in pieces) == data
    assert {piece.size for piece in pieces} == {len(data)}
    assert [len(piece.data) for piece in pieces] == [100] * 7 + [50]
    empty = await attempt.put_blob(b"")
    assert (await attempt.blob_piece(empty.digest, 0, 100)).size == 0


Part = Callable[[PagedAttemptStore, UUID, UUID, str], Awaitable[object]]

PARTS: dict[str, Part] = {
    "session_page": lambda attempt, session, turn, blob: attempt.session_page(session, 0, 100),
    "a later session_page": lambda attempt, session, turn, blob: attempt.session_page(session, 1, 100),
    "call_page": lambda attempt, session, turn, blob: attempt.call_page(session, turn, -1, 100),
    "queue_page": lambda attempt, session, turn, blob: attempt.queue_page(session, 0, 100),
    "clear_page": lambda attempt, session, turn, blob: attempt.clear_page(session, list(QueueName), uuid4(), 0, 100),
    "a later clear_page": lambda attempt, session, turn, blob: attempt.clear_page(session, [], uuid4(), 1, 100),
    "blob_piece": lambda attempt, session, turn, blob: attempt.blob_piece(blob, 0, 100),
}

every_part = pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())


@every_part
async def test_a_superseded_attempt_reads_no_part(store: RunStore, part: Part) -> None:
    attempt = await attempt_of(store)
    session, turn = await with_turn(attempt)
    blob = await attempt.put_blob(b"bytes")
    await part(attempt, session, turn, blob.digest)
    fenced = store.attempt_store(replace(attempt.ref, fence=attempt.ref.fence + 1))
    with pytest.raises(Superseded):
        await part(fenced, session, turn, blob.digest)
    await replaced(store, attempt.ref)
    with pytest.raises(Superseded):
        await part(attempt, session, turn, blob.digest)


@pytest.mark.parametrize("part", [part for name, part in PARTS.items() if name != "blob_piece"])
async def test_another_run_of_the_tenant_reads_no_part_of_a_session(store: RunStore, part: Part) -> None:
    tenant = uuid4()
    ours, other = await attempt_of(store, tenant), await attempt_of(store, tenant)
    session, turn = await with_turn(ours)
    with pytest.raises((Conflict, NotFound)):
        await part(other, session, turn, "")


async def test_the_ids_of_one_tenant_open_no_part_for_another(store: RunStore) -> None:
    ours, theirs = await attempt_of(store, uuid4()), await attempt_of(store, uuid4())
    session, turn = await with_turn(theirs)
    await theirs.intend(session, tool_call(turn))
    await store.session_store().enqueue(theirs.ref.run.tenant, session, QueueName.STEER, {"content": "secret"})
    blob = await theirs.put_blob(b"secret")
    assert (await ours.session_page(session, 0, 100)).rows == [], "a session of its own, of the same id"
    assert (await ours.call_page(session, turn, -1, 100)).rows == []
    assert (await ours.queue_page(session, 0, 100)).rows == []
    with pytest.raises(NotFound):
        await ours.blob_piece(blob.digest, 0, 100)
    assert len((await theirs.session_page(session, 0, 1_000)).rows) == 1
