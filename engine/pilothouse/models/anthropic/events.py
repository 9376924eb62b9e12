"""Events of a streamed message, read into an answer."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, JsonValue

from pilothouse.agents.messages import Usage
from pilothouse.models.anthropic.request import ANSWER, forces_answer
from pilothouse.models.builder import MessageBuilder
from pilothouse.models.failures import server_error
from pilothouse.models.parsing import (
    Count,
    End,
    check_role,
    ending,
    incomplete,
    known,
    malformed,
    parse,
)
from pilothouse.models.provider import ModelEvent, ModelRequest

_ENDS: Mapping[str, End] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "toolUse",
    "refusal": "filtered",
}
"""`pause_turn` is not among them: it ends a turn in which the server runs tools of its own, and none was offered."""


class _Usage(BaseModel):
    input_tokens: Count | None = None
    output_tokens: Count | None = None
    cache_read_input_tokens: Count | None = None
    cache_creation_input_tokens: Count | None = None


class _Message(BaseModel):
    role: str | None = None
    usage: _Usage | None = None


class _Block(BaseModel):
    type: str
    text: str = ""
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: JsonValue = None


class _Delta(BaseModel):
    """Of a block, with its `type`, or of the message."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _Event(BaseModel):
    type: str
    index: int = -1
    message: _Message = _Message()
    content_block: _Block | None = None
    delta: _Delta = _Delta()
    usage: _Usage | None = None
    error: Any = None


class EventReader:
    """Turns the events into those of an answer. Kinds of events that are not known are passed over, as the format's
    rules of versioning demand it; a kind of block that is not known would be a loss, so it is a failure."""

    def __init__(self, builder: MessageBuilder, request: ModelRequest) -> None:
        self._builder = builder
        self._forced = forces_answer(request)
        self._calls: dict[int, int] = {}
        self._usage: dict[str, int] = {}
        self._stop_reason: str | None = None
        self.ended = False

    @property
    def complete(self) -> bool:
        return self._stop_reason is not None

    def read(self, data: str) -> list[ModelEvent]:
        event = parse(_Event, data)
        if event.type == "error" or event.error:
            raise server_error(event.error)
        if event.type == "content_block_start":
            return self._start(event.index, event.content_block)
        if event.type == "content_block_delta":
            return self._delta(event.index, event.delta)
        self._count(event.usage or event.message.usage)
        check_role(event.message.role)
        self._mark(event)
        return []

    def finish(self) -> list[ModelEvent]:
        if self._stop_reason is None:
            raise incomplete()
        end = known(_ENDS, self._stop_reason)
        return ending(self._builder, "stop" if self._forced and end == "toolUse" else end)

    def _mark(self, event: _Event) -> None:
        if event.type == "content_block_stop":
            self._builder.seal()
        elif event.type == "message_delta":
            self._stop_reason = event.delta.stop_reason or self._stop_reason
        elif event.type == "message_stop":
            self.ended = True

    def _start(self, index: int, block: _Block | None) -> list[ModelEvent]:
        """Most blocks begin empty, and then grow by deltas."""
        if block is None:
            raise malformed("content_block: Field required")
        if block.type == "redacted_thinking":
            self._builder.redacted(block.data)
            return []
        if block.type == "tool_use":
            return self._call(index, block)
        if block.type not in ("text", "thinking"):
            raise malformed(f"content_block.type: {block.type[:40]!r} is not known")
        return self._grow(_Delta(text=block.text, thinking=block.thinking, signature=block.signature))

    def _call(self, index: int, block: _Block) -> list[ModelEvent]:
        """The forced call of the answer is no call to execute: what it says is the text of the answer."""
        if self._forced and block.name == ANSWER:
            return []
        started = self._builder.toolcall_start(block.id, block.name)
        self._calls[index] = started.content_index
        return [started, *(self._arguments(index, json.dumps(block.input)) if block.input else [])]

    def _delta(self, index: int, delta: _Delta) -> list[ModelEvent]:
        if delta.type == "input_json_delta":
            return self._arguments(index, delta.partial_json)
        return self._grow(delta)

    def _arguments(self, index: int, piece: str) -> list[ModelEvent]:
        if not piece:
            return []
        if index in self._calls:
            return [self._builder.toolcall_delta(self._calls[index], piece)]
        if self._forced:
            return [self._builder.text(piece)]
        raise malformed(f"index: {index} is no tool call that has begun")

    def _grow(self, delta: _Delta) -> list[ModelEvent]:
        if delta.signature:
            self._builder.sign(delta.signature)
        if delta.thinking:
            return [self._builder.thinking(delta.thinking)]
        return [self._builder.text(delta.text)] if delta.text else []

    def _count(self, usage: _Usage | None) -> None:
        """Later figures replace earlier ones: they count from the beginning."""
        if usage is None:
            return
        self._usage |= usage.model_dump(exclude_none=True)
        counts = self._usage.get
        self._builder.usage = Usage.of(
            input=counts("input_tokens", 0),
            output=counts("output_tokens", 0),
            cache_read=counts("cache_read_input_tokens", 0),
            cache_write=counts("cache_creation_input_tokens", 0),
        )
