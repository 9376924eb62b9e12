"""What the OpenAI-compatible provider makes of servers that misbehave, byte by byte."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from pilothouse.models.http import Limits
from pilothouse.models.openai import OpenAIProvider, Patience
from tests.models.wire import (
    DONE,
    Drip,
    Hold,
    Naps,
    RawServer,
    Reply,
    answer,
    collect,
    delta,
    done,
    failed,
    raw_server,
    request,
    sse,
    types,
)

KEY = "sk-canary-7f3a9"


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture
def connect(naps: Naps) -> Callable[..., OpenAIProvider]:
    def make(server: RawServer, **limits: float) -> OpenAIProvider:
        patience = Patience(limits=Limits(**limits), sleep=naps, jitter=lambda: 1.0)  # type: ignore[arg-type]
        return OpenAIProvider("m", base_url=server.url, api_key=lambda: KEY, patience=patience)

    return make


Connect = Callable[..., OpenAIProvider]


async def test_a_rate_limit_is_waited_out_as_the_server_asks(connect: Connect, naps: Naps) -> None:
    limited = Reply([b"slow down"], status=429, headers={"Retry-After": "7"})
    async with raw_server(limited, Reply([answer()])) as server:
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
async def test_a_server_error_is_tried_three_times_with_growing_waits(connect: Connect, naps: Naps) -> None:
    async with raw_server(Reply([b"oops"], status=500)) as server:
        failure = failed(await collect(connect(server))).failure
    assert len(server.seen) == 3
    assert naps.seconds == [0.5, 1.0]
    assert (failure.code, failure.status, failure.retryable) == ("F-DEP", 500, True)
    assert failure.message == "the model server answered 500: oops"


async def test_success_after_a_server_error_shows_nothing_of_it(connect: Connect) -> None:
    async with raw_server(Reply([b"oops"], status=503), Reply([answer()])) as server:
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
async def test_the_key_is_never_in_an_error_text(connect: Connect, padding: int) -> None:
    body = ("x" * padding + f" Incorrect API key: Bearer {KEY}").encode()
    async with raw_server(Reply([body], status=401)) as server:
        last = failed(await collect(connect(server)))
    assert f"Authorization: Bearer {KEY}" in server.seen[0].head
    assert "sk-can" not in repr(last)
    assert len(last.failure.message) <= 500


async def test_control_characters_of_a_server_do_not_reach_a_terminal(connect: Connect) -> None:
    async with raw_server(Reply(["\x1b[2Jbad\u202e\nline".encode()], status=400)) as server:
        assert failed(await collect(connect(server))).failure.message.endswith("400:  [2Jbad line")


async def test_a_stream_cut_before_any_text_is_tried_again(connect: Connect, naps: Naps) -> None:
    cut = Reply([sse(delta(role="assistant", content="")) + b'data: {"choi'], cut=True)
    async with raw_server(cut, Reply([answer()])) as server:
        events = await collect(connect(server))
    assert types(events) == ["start", "text_delta", "done"]
    assert naps.seconds == [0.5]


@pytest.mark.parametrize("cut", [True, False], ids=["connection lost", "ended early"])
async def test_a_stream_cut_after_text_is_a_failure_that_keeps_the_text(connect: Connect, cut: bool) -> None:
    async with raw_server(Reply([sse(delta(content="half an ans")) + b"data: {"], cut=cut)) as server:
        events = await collect(connect(server))
    last = failed(events)
    assert len(server.seen) == 1
    assert types(events) == ["start", "text_delta", "error"]
    assert (last.message.text, last.message.stop_reason) == ("half an ans", "error")
    assert (last.failure.code, last.failure.retryable) == ("F-DEP", True)
    assert last.message.error_message == last.failure.message
    assert last.message.error_code == "F-DEP"


async def test_an_answer_whose_end_was_announced_survives_a_lost_connection(connect: Connect) -> None:
    body = sse(delta(content="all"), delta(finish="stop"))
    async with raw_server(Reply([body], cut=True)) as server:
        assert done(await collect(connect(server))).message.text == "all"


async def test_characters_cut_between_chunks_are_put_together(connect: Connect) -> None:
    raw = b'data: {"choices":[{"delta":{"content":"' + "grüße 🚀".encode() + b'"}}]}\r\n\r\n'
    steps = [raw[i : i + 1] for i in range(len(raw))]
    async with raw_server(Reply([*steps, sse(delta(finish="stop")), DONE])) as server:
        assert done(await collect(connect(server))).message.text == "grüße 🚀"


async def test_a_surrogate_pair_cut_between_deltas_is_put_together(connect: Connect) -> None:
    body = sse(delta(content="a\ud83d"), delta(content="\ude80b"), delta(content="\udc00!\ud800"), delta(finish="stop"))
    async with raw_server(Reply([body])) as server:
        events = await collect(connect(server))
    assert done(events).message.text == "a🚀b\ufffd!"
    assert [event.delta for event in events if event.type == "text_delta"] == ["a", "🚀b", "\ufffd!"]


async def test_invalid_utf8_is_replaced(connect: Connect) -> None:
    raw = b'data: {"choices":[{"delta":{"content":"a\xff"},"finish_reason":"stop"}]}\n\n'
    async with raw_server(Reply([raw])) as server:
        assert done(await collect(connect(server))).message.text == "a\ufffd"


async def test_comments_and_other_fields_are_skipped(connect: Connect) -> None:
    body = b": OPENROUTER PROCESSING\n\nevent: x\nid: 3\nretry: 10\n" + answer("ok")
    async with raw_server(Reply([body])) as server:
        assert done(await collect(connect(server))).message.text == "ok"


async def test_a_line_of_ten_megabytes_is_refused(connect: Connect) -> None:
    async with raw_server(Reply([b"data: " + b"x" * 10_000_000])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-RES", False)
    assert failure.message == "a line of the stream is longer than 1048576 bytes"


async def test_an_endless_answer_is_cut_off_at_the_limit(connect: Connect) -> None:
    async with raw_server(Reply([sse(delta(content="x" * 100))] * 100)) as server:
        last = failed(await collect(connect(server, response_bytes=4000)))
    assert last.failure.code == "F-RES"
    assert last.failure.message == "the answer is larger than 4000 bytes"
    assert 0 < len(last.message.text) < 4000


async def test_compressed_answers_are_refused(connect: Connect) -> None:
    headers = {"Content-Encoding": "gzip"}
    async with raw_server(Reply([answer()], headers=headers)) as server:
        failure = failed(await collect(connect(server))).failure
    assert "accept-encoding: identity" in server.seen[0].head.lower()
    assert failure.message == "the model server sent 'gzip' content, which was not asked for"


async def test_silence_is_a_timeout(connect: Connect) -> None:
    async with raw_server(Reply([sse(delta(content="a")), Hold()])) as server:
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


@pytest.mark.parametrize(
    "data",
    [
        b"not json",
        b"[1]",
        b'{"choices": [{"delta": {"content": 7}}]}',
        b'{"choices": "x"}',
        b'{"choices": [{"delta": {"tool_calls": [{"function": 3}]}}]}',
        b"[" * 100_000,
    ],
)
async def test_malformed_chunks_are_a_typed_failure(connect: Connect, data: bytes) -> None:
    async with raw_server(Reply([b"data: " + data + b"\n\n" + DONE])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)
    assert failure.message.startswith("the model server sent a malformed chunk")


async def test_a_stream_that_ends_without_any_answer_is_a_failure(connect: Connect) -> None:
    async with raw_server(Reply([DONE])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)
    assert failure.message.startswith("the stream ended before the answer was complete")


async def test_an_error_sent_inside_the_stream_is_a_failure(connect: Connect) -> None:
    body = sse(delta(content="a"), {"error": {"message": "overloaded", "type": "server_error"}})
    async with raw_server(Reply([body])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.message) == ("F-DEP", "the model server failed: overloaded")


async def test_an_answer_that_is_no_event_stream_is_a_failure(connect: Connect) -> None:
    async with raw_server(Reply([b"<html>welcome</html>"])) as server:
        assert failed(await collect(connect(server))).failure.code == "F-DEP"


async def test_a_request_over_the_limit_is_not_sent(connect: Connect) -> None:
    async with raw_server(Reply([answer()])) as server:
        failure = failed(await collect(connect(server, request_bytes=500), request("x" * 600))).failure
    assert (failure.code, failure.retryable) == ("F-INP", False)
    assert server.seen == []


async def test_cancelling_ends_the_call_and_the_connection(connect: Connect) -> None:
    async with raw_server(Reply([sse(delta(content="a")), Hold()])) as server:
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


async def test_leaving_early_closes_the_connection(connect: Connect) -> None:
    async with raw_server(Reply([sse(delta(content="a")), Hold()])) as server:
        async with aclosing(connect(server).stream(request())) as events:
            assert (await anext(events)).type == "start"
        await server.left.wait()
