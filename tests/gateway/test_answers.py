"""Answers of any size arrive whole, and leave in pieces."""

from typing import Any

import pytest
from starlette.types import Message

from pilothouse.gateway.answers import PIECE, Answer, json_answer


async def sent(answer: Answer) -> list[Message]:
    messages: list[Message] = []

    async def send(message: Message) -> None:
        messages.append(message)

    async def receive() -> Any:
        raise AssertionError("an answer asks for nothing")

    await answer({"type": "http"}, receive, send)
    return messages


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE])
async def test_an_answer_leaves_in_pieces(size: int) -> None:
    body = bytes(n % 251 for n in range(size))
    start, *pieces = await sent(Answer(body, "application/octet-stream"))
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-length"] == str(size).encode()
    assert b"".join(piece["body"] for piece in pieces) == body
    assert all(len(piece["body"]) <= PIECE for piece in pieces)
    assert [piece["more_body"] for piece in pieces] == [True] * (len(pieces) - 1) + [False]


async def test_no_answer_may_be_kept_whatever_else_its_headers_say() -> None:
    start, *_ = await sent(json_answer({}, 503, {"Retry-After": "1"}))
    headers = dict(start["headers"])
    assert (start["status"], headers[b"content-type"]) == (503, b"application/json")
    assert (headers[b"cache-control"], headers[b"retry-after"]) == (b"no-store", b"1")
