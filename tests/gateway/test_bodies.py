"""The bodies of requests are bounded: in size, in number at a time, and in the time that they may take."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from starlette.requests import Request

from pilothouse.gateway.bodies import Bodies
from pilothouse.gateway.refusals import Busy, TooSlow
from pilothouse.gateway.room import FREE, PATIENCE, Room
from pilothouse.store.remote import TIMEOUTS
from pilothouse.store.remote.wire import LARGE, LIMITS, PATH, SMALL
from tests.gateway.desk import Desk
from tests.gateway.serving import CA

MiB = 1024 * 1024


def test_small_requests_take_8_mib_and_those_with_values_72() -> None:
    assert {name: limit // MiB for name, limit in LIMITS.items()} == {
        "open_session": 8,
        "append": 72,
        "queued": 8,
        "clear": 8,
        "tool_calls": 8,
        "intend": 72,
        "record": 72,
        "put_blob": 72,
        "get_blob": 8,
        "finish": 72,
    }


@asynccontextmanager
async def raw(desk: Desk) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection on which a test says what no client of ours would."""
    host, port = desk.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(
        host, int(port), ssl=ssl.create_default_context(cadata=CA), server_hostname="localhost"
    )
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def head(desk: Desk, method: str, size: str, token: str | None = None) -> bytes:
    token = token or await desk.token()
    return (
        f"POST {PATH}/{method} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {token}\r\n{size}\r\n\r\n"
    ).encode()


@pytest.mark.parametrize("method", LIMITS)
async def test_a_request_that_says_it_is_too_large_is_refused_before_it_is_sent(desk: Desk, method: str) -> None:
    async with raw(desk) as (reader, writer):
        writer.write(await head(desk, method, f"Content-Length: {LIMITS[method] + 1}"))
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert f"more than the {LIMITS[method]:,} bytes that this route takes".encode() in answer


async def test_a_request_that_does_not_say_its_size_is_cut_off_at_the_limit(desk: Desk) -> None:
    async with raw(desk) as (reader, writer):
        writer.write(await head(desk, "open_session", "Transfer-Encoding: chunked"))
        for _ in range(SMALL // MiB):
            writer.write(b"100000\r\n" + b" " * MiB + b"\r\n")
            await writer.drain()
        writer.write(b"1\r\n \r\n")
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_the_largest_body_that_a_route_takes_is_taken(desk: Desk) -> None:
    answer = await desk.post("put_blob", await desk.token(), bytes(LARGE))
    assert (answer.status_code, answer.json()["size"]) == (200, LARGE)


async def test_a_stranger_is_refused_before_a_byte_of_his_body_is_read(desk: Desk) -> None:
    async with raw(desk) as (reader, writer):
        writer.write(await head(desk, "put_blob", f"Content-Length: {LARGE}", token="made-up"))
        answer = await reader.readuntil(b"}")
    assert answer.startswith(b"HTTP/1.1 401 ")


class Uploads:
    """Requests of a given size, unknown if negative, whose bodies come only when a test lets them."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.arrives = asyncio.Event()

    def request(self) -> Request:
        async def receive() -> dict[str, object]:
            await self.arrives.wait()
            return {"type": "http.request", "body": b"x", "more_body": False}

        headers = [] if self.size < 0 else [(b"content-length", str(self.size).encode())]
        return Request({"type": "http", "headers": headers}, receive)


async def use(bodies: Bodies, uploads: Uploads, held: asyncio.Event | None = None) -> bytes:
    async with bodies.body_of(uploads.request(), LARGE) as body:
        if held:
            await held.wait()
        return body


def arrived(size: int) -> Uploads:
    uploads = Uploads(size)
    uploads.arrives.set()
    return uploads


@pytest.mark.parametrize("sizes", [[LARGE], [LARGE // 2, LARGE // 2], [LARGE // 9] * 9], ids=len)
async def test_more_bytes_than_memory_holds_wait_until_there_is_room_and_small_bodies_do_not(sizes: list[int]) -> None:
    bodies, held = Bodies(Room()), asyncio.Event()
    in_use = [asyncio.create_task(use(bodies, arrived(size), held)) for size in sizes]
    waiting = asyncio.create_task(use(bodies, arrived(FREE + 1)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert await use(bodies, arrived(FREE)) == b"x"
    assert not waiting.done(), "a body is held until its request was served, not just read"
    held.set()
    assert await asyncio.gather(*in_use, waiting) == [b"x"] * (len(sizes) + 1)


async def test_a_body_of_unknown_size_takes_as_much_room_as_it_may_need() -> None:
    bodies, held, unknown = Bodies(Room()), asyncio.Event(), arrived(-1)
    in_use = asyncio.create_task(use(bodies, unknown, held))
    waiting = asyncio.create_task(use(bodies, arrived(FREE + 1)))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not waiting.done()
    held.set()
    await asyncio.gather(in_use, waiting)


async def test_who_waits_too_long_for_room_is_asked_to_come_again() -> None:
    bodies, held = Bodies(Room(0.01)), asyncio.Event()
    in_use = asyncio.create_task(use(bodies, arrived(LARGE), held))
    await asyncio.sleep(0)
    with pytest.raises(Busy):
        await use(bodies, arrived(LARGE))
    held.set()
    await in_use
    assert await use(bodies, arrived(LARGE)) == b"x", "there is room again"


async def test_a_body_that_never_comes_gives_its_room_back() -> None:
    bodies = Bodies(Room(), arrival=0.01)
    for _ in range(2):
        with pytest.raises(TooSlow):
            await use(bodies, Uploads(LARGE))
    assert await use(bodies, arrived(LARGE)) == b"x"


def test_a_client_waits_longer_than_a_request_may_take() -> None:
    database = 5 + 30  # for a connection, and for a statement: store/postgres/pool.py
    assert PATIENCE + database < (TIMEOUTS.read or 0)
