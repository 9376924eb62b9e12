"""Events of a streamed response, read into an answer."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, JsonValue

from pilothouse.agents.messages import Usage
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
    split_input,
)
from pilothouse.models.provider import ModelEvent, ModelRequest

_ENDS: Mapping[str, End] = {
    "completed": "stop",
    "incomplete": "length",
    "max_output_tokens": "length",
    "content_filter": "filtered",
}
"""The status of the response, or why it is incomplete."""

_TEXT = ("response.output_text.delta", "response.refusal.delta")
_THINKING = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class _InputDetails(BaseModel):
    cached_tokens: Count = 0


class _Usage(BaseModel):
    input_tokens: Count = 0
    output_tokens: Count = 0
    input_tokens_details: _InputDetails | None = None

    def tokens(self) -> Usage:
        cached = self.input_tokens_details.cached_tokens if self.input_tokens_details else 0
        return split_input(self.input_tokens, self.output_tokens, cached)


class _Incomplete(BaseModel):
    reason: str = ""


class _Response(BaseModel):
    status: str | None = None
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None
    error: Any = None


class _Part(BaseModel):
    model_config = {"extra": "allow"}

    text: str = ""
    refusal: str = ""


class _Item(BaseModel):
    """What the output consists of: messages, reasoning, function calls."""

    model_config = {"extra": "allow"}

    type: str
    role: str | None = None
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    content: list[_Part] | None = None
    encrypted_content: str | None = None


class _Event(BaseModel):
    type: str
    output_index: int = -1
    summary_index: int = 0
    delta: JsonValue = ""
    item: _Item | None = None
    response: _Response = _Response()
    error: Any = None
    code: JsonValue = None
    message: str | None = None

    @property
    def text(self) -> str:
        if not isinstance(self.delta, str):
            raise malformed("delta: Input should be a valid string")
        return self.delta


class EventReader:
    """Turns the events into those of an answer. Kinds of events that are not known are passed over: the format grows
    by them. Items that only the server's own tools make are a failure, as none of those was offered."""

    def __init__(self, builder: MessageBuilder, request: ModelRequest) -> None:
        self._builder = builder
        self._calls: dict[int, _OpenCall] = {}
        self._spoken: set[int] = set()
        self._last: _Response | None = None

    @property
    def complete(self) -> bool:
        return self._last is not None

    @property
    def ended(self) -> bool:
        return self._last is not None

    def read(self, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":  # some compatible servers end every stream like this
            return []
        event = parse(_Event, data)
        if event.type == "error" or event.error:
            raise server_error(event.error or {"message": event.message, "code": event.code})
        if event.type in ("response.completed", "response.incomplete", "response.failed"):
            self._end(event.response)
        elif event.item and event.type == "response.output_item.added":
            return self._begin(event.output_index, event.item)
        elif event.item and event.type == "response.output_item.done":
            return self._whole(event.output_index, event.item)
        return self._delta(event)

    def finish(self) -> list[ModelEvent]:
        if self._last is None:
            raise incomplete()
        why = self._last.incomplete_details.reason if self._last.incomplete_details else ""
        return ending(self._builder, known(_ENDS, why or self._last.status or "completed"))

    def _end(self, response: _Response) -> None:
        if response.usage:
            self._builder.usage = response.usage.tokens()
        if response.error:
            raise server_error(response.error)
        self._last = response

    def _begin(self, index: int, item: _Item) -> list[ModelEvent]:
        check_role(item.role)
        self._builder.seal()
        if item.type == "function_call":
            started = self._builder.toolcall_start(item.call_id, item.name)
            self._calls[index] = _OpenCall(started.content_index)
            return [started]
        if item.type not in ("message", "reasoning"):
            raise malformed(f"item.type: {item.type[:40]!r} is not known")
        return []

    def _delta(self, event: _Event) -> list[ModelEvent]:
        if event.type == "response.function_call_arguments.delta":
            return self._arguments(event.output_index, event.text)
        if event.type == "response.reasoning_summary_part.added" and event.summary_index > 0:
            return [self._builder.thinking("\n\n")]
        if event.type in _THINKING and event.text:
            return [self._builder.thinking(event.text)]
        if event.type in _TEXT and event.text:
            self._spoken.add(event.output_index)
            return [self._builder.text(event.text)]
        return []

    def _arguments(self, index: int, piece: str) -> list[ModelEvent]:
        call = self._calls.get(index)
        if call is None:
            raise malformed(f"output_index: {index} is no function call that has begun")
        call.begun = call.begun or bool(piece)
        return [self._builder.toolcall_delta(call.content_index, piece)] if piece else []

    def _whole(self, index: int, item: _Item) -> list[ModelEvent]:
        """The item once more, complete; some servers send it only so, without the pieces."""
        if item.type == "reasoning":
            self._sign(item)
        elif item.type == "function_call":
            begun = self._begin(index, item) if index not in self._calls else []
            return [*begun, *([] if self._calls[index].begun else self._arguments(index, item.arguments))]
        elif item.type == "message" and index not in self._spoken:
            text = "".join(part.text or part.refusal for part in item.content or [])
            return [self._builder.text(text)] if text else []
        return []

    def _sign(self, item: _Item) -> None:
        """Without its ciphertext a server that keeps nothing can do nothing with the item, and refuses it."""
        if item.encrypted_content:
            self._builder.sign(json.dumps(_returnable(item.model_dump(exclude_unset=True))))
        self._builder.seal()


class _OpenCall:
    def __init__(self, content_index: int) -> None:
        self.content_index = content_index
        self.begun = False


def _returnable(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "status" and value is not None}
