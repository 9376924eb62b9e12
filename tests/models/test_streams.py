"""What the providers make of bytes that no good server sends, in each of the formats."""

import pytest

from tests.models.dialects import Connect, Dialect
from tests.models.wire import (
    Naps,
    Reply,
    collect,
    done,
    failed,
    raw_server,
    sse,
)


async def test_characters_cut_between_chunks_are_put_together(connect: Connect, dialect: Dialect) -> None:
    raw = dialect.said("XX").replace(b"XX", "grüße 🚀".encode()).replace(b"\n", b"\r\n")
    steps = [raw[i : i + 1] for i in range(len(raw))]
    async with raw_server(Reply([dialect.beginning, *steps, dialect.end])) as server:
        assert done(await collect(connect(server))).message.text == "grüße 🚀"


async def test_a_surrogate_pair_cut_between_deltas_is_put_together(connect: Connect, dialect: Dialect) -> None:
    pieces = [dialect.said(text) for text in ("a\ud83d", "\ude80b", "\udc00!\ud800")]
    async with raw_server(Reply([dialect.beginning, *pieces, dialect.end])) as server:
        events = await collect(connect(server))
    assert done(events).message.text == "a🚀b\ufffd!"
    assert [event.delta for event in events if event.type == "text_delta"] == ["a", "🚀b", "\ufffd!"]


async def test_invalid_utf8_is_replaced(connect: Connect, dialect: Dialect) -> None:
    raw = dialect.answer("aXX").replace(b"XX", b"\xff")
    async with raw_server(Reply([raw])) as server:
        assert done(await collect(connect(server))).message.text == "a\ufffd"


async def test_comments_and_other_fields_are_skipped(connect: Connect, dialect: Dialect) -> None:
    body = b": OPENROUTER PROCESSING\n\nevent: x\nid: 3\nretry: 10\n" + dialect.answer("ok")
    async with raw_server(Reply([body])) as server:
        assert done(await collect(connect(server))).message.text == "ok"


@pytest.mark.parametrize("data", [b"not json", b"[1]", b"[" * 100_000])
async def test_what_is_no_event_is_a_typed_failure(connect: Connect, dialect: Dialect, data: bytes) -> None:
    async with raw_server(Reply([b"data: " + data + b"\n\n" + dialect.end])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)
    assert failure.message.startswith("the model server sent a malformed event")


async def test_an_event_of_a_wrong_shape_is_a_typed_failure(connect: Connect, dialect: Dialect) -> None:
    """Also one in another role than the model's, and content of a kind that was not asked for."""
    for data in dialect.broken:
        async with raw_server(Reply([b"data: " + data + b"\n\n" + dialect.end])) as server:
            failure = failed(await collect(connect(server))).failure
        assert (failure.code, failure.retryable) == ("F-DEP", True), data
        assert failure.message.startswith(("the model server sent a malformed event", "the stream ended")), data


async def test_kinds_of_events_that_are_not_known_are_passed_over(connect: Connect, dialect: Dialect) -> None:
    unknown = b'data: {"type": "sparkle", "choices": []}\n\n'
    async with raw_server(Reply([unknown + dialect.answer("ok") + unknown])) as server:
        assert done(await collect(connect(server))).message.text == "ok"


async def test_a_stream_that_ends_without_any_answer_is_a_failure(connect: Connect) -> None:
    async with raw_server(Reply([b": nothing\n\n"])) as server:
        failure = failed(await collect(connect(server))).failure
    assert (failure.code, failure.retryable) == ("F-DEP", True)
    assert failure.message.startswith("the stream ended before the answer was complete")


@pytest.mark.parametrize(
    ("kind", "code", "retryable"),
    [
        ("server_error", "F-DEP", True),
        ("overloaded_error", "F-DEP", True),
        ("rate_limit_error", "F-DEP", True),
        ("insufficient_quota", "F-DEP", False),
        ("invalid_request_error", "F-INP", False),
        ("permission_error", "F-SEC", False),
    ],
)
async def test_an_error_inside_the_stream_is_a_failure(
    connect: Connect, dialect: Dialect, kind: str, code: str, retryable: bool
) -> None:
    error = {"type": "error", "error": {"message": "no more", "type": kind}}
    async with raw_server(Reply([dialect.said("a") + sse(error)])) as server:
        last = failed(await collect(connect(server)))
    assert (last.failure.code, last.failure.retryable) == (code, retryable)
    assert (last.failure.message, last.message.text) == ("the model server failed: no more", "a")


async def test_an_error_before_anything_was_said_is_tried_again(connect: Connect, dialect: Dialect, naps: Naps) -> None:
    overloaded = sse({"type": "error", "error": {"message": "Overloaded", "type": "overloaded_error"}})
    async with raw_server(Reply([overloaded]), Reply([dialect.answer()])) as server:
        assert done(await collect(connect(server))).message.text == "hello"
    assert naps.seconds == [0.5]


async def test_an_answer_that_is_no_event_stream_is_a_failure(connect: Connect) -> None:
    async with raw_server(Reply([b"<html>welcome</html>"])) as server:
        assert failed(await collect(connect(server))).failure.code == "F-DEP"
