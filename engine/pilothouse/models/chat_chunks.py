"""Chunks of a streamed chat completion, read into an answer."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, JsonValue, ValidationError

from pilothouse.agents.messages import Usage
from pilothouse.models.builder import MessageBuilder
from pilothouse.models.failures import CallError, call_error
from pilothouse.models.provider import ModelEvent


def _count(value: object) -> int:
    """A wrong figure of tokens is not worth losing an answer for."""
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _text(value: object) -> object:
    return value if isinstance(value, str) else None


_Count = Annotated[int, BeforeValidator(_count)]


class _CachedTokens(BaseModel):
    cached_tokens: _Count = 0


class _Usage(BaseModel):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    prompt_tokens_details: _CachedTokens | None = None

    def tokens(self) -> Usage:
        cached = self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else 0
        cached = min(cached, self.prompt_tokens)
        return Usage(
            input=self.prompt_tokens - cached,
            output=self.completion_tokens,
            cache_read=cached,
            total_tokens=self.prompt_tokens + self.completion_tokens,
        )


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
    """Turns chunks into events. Raises `CallError` for what is no chunk, or says that the server failed."""

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._open: list[_OpenCall] = []
        self._finish_reason: str | None = None
        self._answered = False
        self.ended = False

    @property
    def complete(self) -> bool:
        """The server has said how the answer ends; at most the usage is still to come."""
        return self.ended or self._finish_reason is not None

    def read(self, data: str) -> list[ModelEvent]:
        if data.strip() == "[DONE]":
            self.ended = True
            return []
        chunk = _parse(data)
        if chunk.error:
            raise _server_error(chunk.error)
        if chunk.usage:
            self._builder.usage = chunk.usage.tokens()
        return self._choice(chunk.choices[0]) if chunk.choices else []

    def finish(self) -> list[ModelEvent]:
        """The events that close the answer, once no more chunks come."""
        if not self.complete or not self._answered:
            raise call_error("F-DEP", "the stream ended before the answer was complete", retryable=True)
        return [*self._builder.toolcall_ends(), self._builder.done(self._stop_reason())]

    def _choice(self, choice: _Choice) -> list[ModelEvent]:
        self._answered = True
        self._finish_reason = choice.finish_reason or self._finish_reason
        delta = choice.delta or _Delta()
        events: list[ModelEvent] = []
        if thinking := delta.reasoning_content or delta.reasoning:
            events.append(self._builder.thinking(thinking))
        if text := delta.content or delta.refusal:
            events.append(self._builder.text(text))
        for call in delta.tool_calls or []:
            events += self._call(call)
        return events

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

    def _stop_reason(self) -> Literal["stop", "length", "toolUse"]:
        if self._finish_reason == "content_filter":
            raise call_error("F-SEC", "the model server's content filter stopped the answer")
        if self._finish_reason == "length":
            return "length"
        # Several servers say "stop" beside tool calls, and some say "tool_calls" without any.
        if self._builder.calls:
            return "toolUse"
        if self._finish_reason in ("tool_calls", "function_call"):
            raise call_error("F-DEP", "the model server announced tool calls and sent none", retryable=True)
        return "stop"


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


def _parse(data: str) -> _Chunk:
    try:
        return _Chunk.model_validate(json.loads(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:8])
        raise _malformed(f"{where}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise _malformed(type(error).__name__) from None


def _malformed(what: str) -> CallError:
    return call_error("F-DEP", f"the model server sent a malformed chunk ({what})", retryable=True)


def _server_error(error: object) -> CallError:
    fields = error if isinstance(error, dict) else {"message": error}
    message = f"the model server failed: {fields.get('message')}"
    if "invalid_request" in str(fields.get("type")):
        return call_error("F-INP", message)
    return call_error("F-DEP", message, retryable=True)
