"""Chunks of a streamed chat completion, read into an answer."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, JsonValue

from pilothouse.agents.messages import Usage
from pilothouse.models.builder import MessageBuilder
from pilothouse.models.chat.request import REASONING_FIELDS
from pilothouse.models.failures import server_error
from pilothouse.models.parsing import Count, End, check_role, ending, incomplete, known, parse, split_input
from pilothouse.models.provider import ModelEvent, ModelRequest

_ENDS: Mapping[str, End] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "toolUse",
    "function_call": "toolUse",
    "content_filter": "filtered",
}
"""Why answers end, in the words of OpenAI and of servers that speak almost like it."""


def _text(value: object) -> object:
    return value if isinstance(value, str) else None


class _CachedTokens(BaseModel):
    cached_tokens: Count = 0
    cache_write_tokens: Count = 0


class _Usage(BaseModel):
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    prompt_tokens_details: _CachedTokens | None = None

    def tokens(self) -> Usage:
        cached = self.prompt_tokens_details or _CachedTokens()
        return split_input(self.prompt_tokens, self.completion_tokens, cached.cached_tokens, cached.cache_write_tokens)


class _Function(BaseModel):
    name: str | None = None
    arguments: str | dict[str, JsonValue] | None = None

    @property
    def text(self) -> str:
        """Some servers send the arguments as an object and not as its text."""
        return json.dumps(self.arguments) if isinstance(self.arguments, dict) else self.arguments or ""


class _CallDelta(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _Delta(BaseModel):
    role: str | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: Annotated[str | None, BeforeValidator(_text)] = None
    tool_calls: list[_CallDelta] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Chunk(BaseModel):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


class ChunkReader:
    """Turns chunks into events."""

    def __init__(self, builder: MessageBuilder, request: ModelRequest) -> None:
        self._builder = builder
        self._open: list[_OpenCall] = []
        self._finish_reason: str | None = None
        self._answered = False
        self.ended = False

    @property
    def complete(self) -> bool:
        """At most the usage is still to come."""
        return self.ended or self._finish_reason is not None

    def read(self, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":
            self.ended = True
            return []
        chunk = parse(_Chunk, data)
        if chunk.error:
            raise server_error(chunk.error)
        if chunk.usage:
            self._builder.usage = chunk.usage.tokens()
        return self._choice(chunk.choices[0]) if chunk.choices else []

    def finish(self) -> list[ModelEvent]:
        if not self.complete or not self._answered:
            raise incomplete()
        return ending(self._builder, known(_ENDS, self._finish_reason or "stop"))

    def _choice(self, choice: _Choice) -> list[ModelEvent]:
        self._answered = True
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta or _Delta()
        check_role(delta.role)
        events: list[ModelEvent] = self._thinking(delta)
        if text := delta.content or delta.refusal:
            events.append(self._builder.text(text))
        for call in delta.tool_calls or []:
            events += self._call(call)
        return events

    def _thinking(self, delta: _Delta) -> list[ModelEvent]:
        """The field's name becomes the signature: by it the thinking is sent back."""
        for name in REASONING_FIELDS:
            if text := getattr(delta, name):
                self._builder.sign(name)
                return [self._builder.thinking(text)]
        return []

    def _call(self, delta: _CallDelta) -> list[ModelEvent]:
        events: list[ModelEvent] = []
        call = next((known for known in reversed(self._open) if known.continued_by(delta)), None)
        if call is None:
            started = self._builder.toolcall_start(delta.id or "", delta.function.name or "")
            events.append(started)
            call = _OpenCall(delta.index, delta.id, started.content_index)
            self._open.append(call)
        if delta.function.text:
            events.append(self._builder.toolcall_delta(call.content_index, delta.function.text))
        return events


class _OpenCall:
    """A call whose arguments may go on. Servers mark the pieces by index; some by id, or by nothing."""

    def __init__(self, index: int | None, call_id: str | None, content_index: int) -> None:
        self._index = index
        self._id = call_id
        self.content_index = content_index

    def continued_by(self, delta: _CallDelta) -> bool:
        if delta.id and self._id and delta.id != self._id:
            return False  # also under the same index: some servers number every call 0
        if delta.index is not None:
            return delta.index == self._index
        return bool(delta.id) or not delta.function.name
