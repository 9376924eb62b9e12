"""The three formats as a server speaks them: the least that a test needs to say the same thing in each."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pilothouse.models.anthropic.wire import MESSAGES
from pilothouse.models.chat.wire import CHAT
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.responses.wire import RESPONSES
from pilothouse.models.wire import Wire
from tests.models.wire import DONE, delta, sse

KEY = "sk-canary-7f3a9"
PROVIDERS = {CHAT.api: "openai", RESPONSES.api: "openai", MESSAGES.api: "anthropic"}


def events(*data: Mapping[str, Any]) -> bytes:
    """Events that carry their type twice, as both vendors send them."""
    return b"".join(b"event: %s\ndata: %s\n\n" % (d["type"].encode(), json.dumps(d).encode()) for d in data)


def block(index: int, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": fields}


def grow(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def close(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message_start(**usage: Any) -> dict[str, Any]:
    return {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": usage}}


def message_end(reason: str, **usage: Any) -> list[dict[str, Any]]:
    stop = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    return [stop, {"type": "message_stop"}]


def item(index: int, *, done: bool = False, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.output_item.{'done' if done else 'added'}", "output_index": index, "item": fields}


def piece(index: int, kind: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "output_index": index, "delta": text, **fields}


def response(status: str = "completed", **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{status}", "response": {"id": "resp_1", "status": status, **fields}}


Connect = Callable[..., HttpProvider]
"""Makes a provider for a raw server, with limits by their names."""


@dataclass(frozen=True)
class Dialect:
    """What comes before and after the text of an answer, events of a wrong shape, and the header of the key."""

    wire: Wire
    beginning: bytes
    end: bytes
    broken: tuple[bytes, ...]
    key_header: str

    def provider(self, url: str, model: str = "m", **fields: Any) -> HttpProvider:
        return HttpProvider(self.wire, model, provider=PROVIDERS[self.wire.api], base_url=url, **fields)

    def said(self, text: str) -> bytes:
        return {
            CHAT.api: lambda: sse(delta(content=text)),
            RESPONSES.api: lambda: events(piece(0, "output_text", text)),
            MESSAGES.api: lambda: events(grow(0, "text_delta", text=text)),
        }[self.wire.api]()

    def answer(self, text: str = "hello") -> bytes:
        return self.beginning + self.said(text) + self.end


CHAT_DIALECT = Dialect(
    CHAT,
    sse(delta(role="assistant", content="")),
    sse(delta(finish="stop")) + DONE,
    (
        b'{"choices": [{"delta": {"content": 7}}]}',
        b'{"choices": "x"}',
        b'{"choices": [{"delta": {"tool_calls": [{"function": 3}]}}]}',
        b'{"choices": [{"delta": {"role": "user", "content": "hi"}}]}',
    ),
    "authorization: bearer ",
)

RESPONSES_DIALECT = Dialect(
    RESPONSES,
    events({"type": "response.created", "response": {}}, item(0, type="message", role="assistant", content=[])),
    events(response()),
    (
        b'{"type": "response.output_text.delta", "delta": 7}',
        b'{"type": "response.output_item.added", "item": {"type": "web_search_call"}}',
        b'{"type": "response.output_item.added", "item": {"type": "message", "role": "user"}}',
        b'{"type": "response.function_call_arguments.delta", "output_index": 4, "delta": "{"}',
        b'{"type": 3}',
        b"{}",
    ),
    "authorization: bearer ",
)

MESSAGES_DIALECT = Dialect(
    MESSAGES,
    events(message_start(input_tokens=3), block(0, type="text", text="")),
    events(close(0), *message_end("end_turn", output_tokens=5)),
    (
        b'{"type": "content_block_delta", "delta": {"type": "text_delta", "text": 7}}',
        b'{"type": "content_block_start", "index": 0}',
        b'{"type": "content_block_start", "index": 0, "content_block": {"type": "server_tool_use", "id": "a"}}',
        b'{"type": "content_block_delta", "index": 4, "delta": {"type": "input_json_delta", "partial_json": "{"}}',
        b'{"type": "message_start", "message": {"role": "user"}}',
        b"{}",
    ),
    "x-api-key: ",
)

DIALECTS = (CHAT_DIALECT, RESPONSES_DIALECT, MESSAGES_DIALECT)
