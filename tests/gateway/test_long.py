"""Answers that are longer than memory holds: what is held at a time, and for how long."""

import asyncio
from uuid import UUID, uuid4

import pytest
from starlette.responses import Response
from starlette.types import Message

from pilothouse.gateway import answers
from pilothouse.gateway.answers import PIECE
from pilothouse.gateway.long import blob, paged
from pilothouse.gateway.refusals import Busy
from pilothouse.gateway.room import FREE, ROOM, Room
from pilothouse.records.sessions import NewEntry
from pilothouse.store.pages import Page, Piece
from pilothouse.store.ports import RunStore
from pilothouse.store.remote.answers import Listing
from pilothouse.store.rows import Row
from tests.gateway.desk import Desk
from tests.gateway.serving import StoreOverHTTP
from tests.store.samples import tool_call

LISTING = Listing('{"rows":[', lambda row: ("[", row["text"], "]"), lambda last: "]}", "n", 0)


class Rows:
    """Rows of given sizes, read as a store would; `asked` is the sizes that pages were asked for."""

    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes
        self.asked: list[int] = []

    async def read(self, after: int, size: int) -> Page:
        self.asked.append(size)
        found: list[Row] = []
        for n, takes in enumerate(self.sizes[after:], after + 1):
            size -= takes
            if size < 0:
                return Page(found, takes)
            found.append({"n": n, "text": "1" * takes})
        return Page(found, 0)

    def whole(self) -> bytes:
        return ('{"rows":[' + ",".join(f"[{'1' * size}]" for size in self.sizes) + "]}").encode()


class Client:
    """Takes what is sent; while it does not `listen`, nothing leaves."""

    def __init__(self, listens: bool = True) -> None:
        self.body = bytearray()
        self.pieces: list[int] = []
        self.listens = asyncio.Event()
        if listens:
            self.listens.set()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.body":
            await self.listens.wait()
            self.body += message["body"]
            self.pieces.append(len(message["body"]))

    async def take(self, answer: Response) -> bytes:
        async def receive() -> Message:
            raise AssertionError("an answer asks for nothing")

        await answer({"type": "http"}, receive, self.send)
        return bytes(self.body)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("sizes", [(), (5,), (1, 2, 3), (FREE,)], ids=len)
async def test_what_needs_no_room_is_one_read_and_says_its_length(sizes: tuple[int, ...]) -> None:
    rows = Rows(*sizes)
    answer = await paged(Room(), LISTING, rows.read)
    assert await Client().take(answer) == rows.whole()
    assert rows.asked == [FREE]
    assert answer.headers["content-length"] == str(len(rows.whole()))


SIZES = [(FREE, 1), (1, FREE), (FREE + 1,), (3 * FREE, 5, 2 * FREE, FREE, 7), (ROOM, 1, ROOM)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
async def test_longer_answers_hold_one_row_that_needs_room_or_less(sizes: tuple[int, ...]) -> None:
    rows, client = Rows(*sizes), Client()
    assert await client.take(await paged(Room(), LISTING, rows.read)) == rows.whole()
    assert set(rows.asked) <= {FREE} | {size for size in sizes if size > FREE}
    assert max(client.pieces) < 2 * PIECE


async def test_a_large_row_is_not_read_before_there_is_room_and_holds_it_until_it_was_sent() -> None:
    room, rows, client = Room(), Rows(3, ROOM), Client(listens=False)
    async with room.held(FREE + 1):
        sending = asyncio.create_task(client.take(await paged(room, LISTING, rows.read)))
        client.listens.set()
        await settled()
        assert rows.asked == [FREE], "the rest has to wait"
        client.listens.clear()
    await settled()
    assert rows.asked == [FREE, ROOM]
    other = asyncio.create_task(taken(room))
    await settled()
    assert not other.done(), "the row is there and has not left"
    client.listens.set()
    assert len(await sending) == len('{"rows":[[111],[]]}') + ROOM
    await other


async def taken(room: Room) -> None:
    async with room.held(FREE + 1):
        pass


async def test_small_answers_wait_for_nothing() -> None:
    room = Room()
    async with room.held(ROOM):
        await Client().take(await paged(room, LISTING, Rows(FREE).read))


async def test_who_does_not_take_a_row_in_time_is_cut_off_and_its_room_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "DEPARTURE", 0.01)
    room, deaf = Room(), Client(listens=False)
    with pytest.raises(TimeoutError):
        await deaf.take(await paged(room, LISTING, Rows(ROOM).read))
    await taken(room)


async def test_who_waits_too_long_for_room_is_cut_short() -> None:
    room = Room(0.01)
    async with room.held(ROOM):
        with pytest.raises(Busy):
            await Client().take(await paged(room, LISTING, Rows(FREE + 1).read))
    await taken(room)


@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE])
async def test_of_a_blob_one_piece_is_held(size: int) -> None:
    data, asked = bytes(n % 251 for n in range(size)), []

    async def read(start: int, length: int) -> Piece:
        asked.append((start, length))
        return Piece(size, data[start : start + length])

    answer = await blob(read)
    assert await Client().take(answer) == data
    assert answer.headers["content-length"] == str(size)
    assert asked == [(start, PIECE) for start in range(0, max(size, 1), PIECE)]


async def filled(desk: Desk) -> tuple[UUID, UUID]:
    direct, session = desk.store.attempt_store(desk.ref), uuid4()
    await direct.open_session(session)
    leaf = None
    for text in ("a", "b" * 2 * FREE, "c", "d" * (FREE - 100), "é" * 200_000, "f"):
        entry = NewEntry(uuid4(), "message", {"text": text})
        await direct.append(session, leaf, [entry])
        leaf = entry.id
    assert leaf is not None
    for ordinal, arguments in enumerate([b"{}", bytes(2 * FREE), b"\xff" * FREE, b""]):
        await direct.intend(session, tool_call(leaf, ordinal=ordinal, arguments=arguments))
    return session, leaf


async def test_an_attempt_reads_through_the_gateway_whatever_there_is(desk: Desk) -> None:
    session, turn = await filled(desk)
    store: RunStore = desk.store
    direct = store.attempt_store(desk.ref)
    remote = StoreOverHTTP(store, desk.client).attempt_store(desk.ref)
    assert await remote.open_session(session) == await direct.open_session(session)
    assert await remote.tool_calls(session, turn) == await direct.tool_calls(session, turn)
    ref = await direct.put_blob(bytes(range(256)) * 10_000)
    assert await remote.get_blob(ref.digest) == bytes(range(256)) * 10_000
