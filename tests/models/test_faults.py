"""What the providers make of servers that misbehave, byte by byte, in each of the formats."""

import asyncio
from contextlib import aclosing

import pytest

from tests.models.dialects import KEY, Connect, Dialect
from tests.models.wire import (
    DONE,
    Drip,
    Hold,
    Naps,
    Reply,
    collect,
    done,
    failed,
    raw_server,
    request,
    types,
)


async def test_a_rate_limit_is_waited_out_as_the_server_asks(connect: Connect, dialect: Dialect, naps: Naps) -> None:
    limited = Reply([b"slow down"], status=429, headers={"Retry-After": "7"})
    async with raw_server(limited, Reply([dialect.answer()])) as server:
        events = await collect(connect(server))
    assert done(events).message.text == "hello"
    assert naps.seconds == [7.0]
    assert len(server.seen) == 2


async def test_a_wait_longer_than_patience_is_left_to_the_caller(connect: Connect, naps: Naps) -> None:
    async with raw_server(Reply([], status=429, headers={"Retry-After": "3600"})) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.status, failure.retry_after) == ("F-DEP", 429, 3600.0)
    assert failure.retryable
    assert naps.seconds == []


@pytest.mark.feature("B86")
@pytest.mark.parametrize(
    ("status", "code"), [(408, "F-TMO"), (409, "F-DEP"), (429, "F-DEP"), (500, "F-DEP"), (504, "F-TMO"), (529, "F-DEP")]
)
async def test_a_failure_that_may_pass_is_tried_three_times_with_growing_waits(
    connect: Connect, naps: Naps, status: int, code: str
) -> None:
    async with raw_server(Reply([b"oops"], status=status)) as server:
        failure = failed(await collect(connect(server))).failure
    assert len(server.seen) == 3
    assert naps.seconds == [0.5, 1.0]
    assert (failure.code, failure.status, failure.retryable) == (code, status, True)
    assert failure.message == f"the model server answered {status}: oops"


async def test_success_after_a_server_error_shows_nothing_of_it(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([b"oops"], status=503), Reply([dialect.answer()])) as server:
        events = await collect(connect(server))
    assert types(events) == ["start", "text_delta", "done"]


@pytest.mark.feature("B86")
@pytest.mark.parametrize(
    ("status", "code"), [(400, "F-INP"), (401, "F-SEC"), (403, "F-SEC"), (404, "F-INP"), (307, "F-INP")]
)
async def test_other_refusals_are_final(connect: Connect, status: int, code: str) -> None:
    body = b'{"error": {"message": "no such thing", "type": "x"}}'
    async with raw_server(Reply([body], status=status)) as server:
        failure = failed(await collect(connect(server))).failure
    assert len(server.seen) == 1
    assert (failure.code, failure.retryable) == (code, False)
    assert failure.message == f"the model server answered {status}: no such thing"


@pytest.mark.parametrize("padding", [0, 470, 490, 500])
async def test_the_key_is_never_in_an_error_text(connect: Connect, dialect: Dialect, padding: int) -> None:
    body = ("x" * padding + f" Incorrect API key: Bearer {KEY}").encode()
    async with raw_server(Reply([body], status=401)) as server:
        last = failed(await collect(connect(server)))
    assert f"{dialect.key_header}{KEY}".lower() in server.seen[0].head.lower()
    assert "sk-can" not in repr(last)
    assert len(last.failure.message) <= 500


async def test_control_characters_of_a_server_do_not_reach_a_terminal(connect: Connect) -> None:
    async with raw_server(Reply(["\x1b[2Jbad\u202e\nline".encode()], status=400)) as server:
        assert failed(await collect(connect(server))).failure.message.endswith("400:  [2Jbad line")


async def test_a_stream_cut_before_any_text_is_tried_again(connect: Connect, dialect: Dialect, naps: Naps) -> None:
    cut = Reply([dialect.beginning + b'data: {"choi'], cut=True)
    async with raw_server(cut, Reply([dialect.answer()])) as server:
        events = await collect(connect(server))
    assert types(events) == ["start", "text_delta", "done"]
    assert naps.seconds == [0.5]


@pytest.mark.parametrize("cut", [True, False], ids=["connection lost", "ended early"])
async def test_a_stream_cut_after_text_is_a_failure_that_keeps_the_text(
    connect: Connect, dialect: Dialect, cut: bool
) -> None:
    async with raw_server(Reply([dialect.said("half an ans") + b"data: {"], cut=cut)) as server:
        events = await collect(connect(server))
    last = failed(events)
    assert len(server.seen) == 1
    assert types(events) == ["start", "text_delta", "error"]
    assert (last.message.text, last.message.stop_reason) == ("half an ans", "error")
    assert (last.failure.code, last.failure.retryable) == ("F-DEP", True)
    assert last.message.error_message == last.failure.message
    assert last.message.error_code == "F-DEP"


async def test_an_answer_whose_end_was_announced_survives_a_lost_connection(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.answer("all").removesuffix(DONE)], cut=True)) as server:
        assert done(await collect(connect(server))).message.text == "all"


async def test_a_line_of_ten_megabytes_is_refused(connect: Connect) -> None:
    async with raw_server(Reply([b"data: " + b"x" * 10_000_000])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-RES", False)
    assert failure.message == "a line of the stream is longer than 1048576 bytes"


async def test_an_endless_answer_is_cut_off_at_the_limit(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.said("x" * 100)] * 100)) as server:
        last = failed(await collect(connect(server, response_bytes=4000)))
    assert last.failure.code == "F-RES"
    assert last.failure.message == "the answer is larger than 4000 bytes"
    assert 0 < len(last.message.text) < 4000


async def test_compressed_answers_are_refused(connect: Connect, dialect: Dialect) -> None:
    headers = {"Content-Encoding": "gzip"}
    async with raw_server(Reply([dialect.answer()], headers=headers)) as server:
        failure = failed(await collect(connect(server))).failure
    assert "accept-encoding: identity" in server.seen[0].head.lower()
    assert failure.message == "the model server sent 'gzip' content, which was not asked for"


async def test_silence_is_a_timeout(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.said("a"), Hold()])) as server:
        failure = failed(await collect(connect(server, idle=0.05))).failure
    assert (failure.code, failure.retryable) == ("F-TMO", True)


async def test_a_drip_that_never_falls_silent_meets_the_total_deadline(connect: Connect) -> None:
    async with raw_server(Reply([Drip()])) as server:
        failure = failed(await collect(connect(server, total=0.2))).failure
    assert (failure.code, failure.message) == ("F-TMO", "the answer was not complete within 0.2 s")
    assert len(server.seen) == 1


async def test_a_refused_connection_is_tried_three_times(connect: Connect, naps: Naps) -> None:
    async with raw_server() as server:
        pass
    failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)
    assert "ConnectError" in failure.message
    assert len(naps.seconds) == 2


async def test_a_request_over_the_limit_is_not_sent(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.answer()])) as server:
        failure = failed(await collect(connect(server, request_bytes=500), request("x" * 600))).failure
    assert (failure.code, failure.retryable) == ("F-INP", False)
    assert server.seen == []


async def test_cancelling_ends_the_call_and_the_connection(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.said("a"), Hold()])) as server:
        seen = asyncio.Event()

        async def read() -> None:
            async with aclosing(connect(server).stream(request())) as events:
                async for event in events:
                    if event.type == "text_delta":
                        seen.set()

        task = asyncio.create_task(read())
        await seen.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.left.wait()


async def test_leaving_early_closes_the_connection(connect: Connect, dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.said("a"), Hold()])) as server:
        async with aclosing(connect(server).stream(request())) as events:
            assert (await anext(events)).type == "start"
        await server.left.wait()
