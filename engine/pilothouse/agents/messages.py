"""Messages of an agent's conversation, and their JSON form.

Python names are snake_case; the JSON form ("wire") is camelCase, as the agent harness documents it, so that a
stored session reads like its documentation. Fields that this version does not know are kept and written back.
All objects are immutable; timestamps are milliseconds since 1970 (UTC).
"""

import time
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    Strict,
    ValidationError,
    field_validator,
)
from pydantic.alias_generators import to_camel

from pilothouse.agents.arguments import ArgumentsError, parse_arguments

StopReason = Literal["stop", "length", "toolUse", "error", "aborted"]
Timestamp = Annotated[int, Strict()]
TokenCount = Annotated[int, Strict(), Field(ge=0)]
_Absent = Field(exclude_if=lambda value: value is None)


class MessageError(ValueError):
    """A dict is not a message; the text names the field, as in `content.0.text: Field required`."""


class _Wire(BaseModel):
    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )


class TextContent(_Wire):
    type: Literal["text"] = "text"
    text: str


class ImageContent(_Wire):
    """An image; `data` is base64. Reads `mimeType` as well, writes `mediaType`."""

    type: Literal["image"] = "image"
    media_type: str = Field(validation_alias=AliasChoices("mediaType", "mimeType"), serialization_alias="mediaType")
    data: str


class ThinkingContent(_Wire):
    """What a model thought. `thinking_signature` is the provider's own proof or ciphertext of it, in the form of
    the message's `api`; it goes back to the same model unchanged. Of `redacted` thinking there is nothing else."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    thinking_signature: Annotated[str | None, _Absent] = None
    redacted: Annotated[bool, Field(exclude_if=lambda value: not value)] = False


class ToolCall(_Wire):
    """A call that the model asks for.

    `arguments_text` is set, and `arguments` empty, when what the model wrote is no JSON object: such a call
    is never executed, it is answered with an error result that says what was wrong (`arguments_error`).
    """

    type: Literal["toolCall"] = "toolCall"
    id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    arguments_text: Annotated[str | None, _Absent] = None

    @classmethod
    def from_text(cls, call_id: str, name: str, text: str) -> "ToolCall":
        """The call whose arguments are the JSON `text`, well-formed or not; blank text means no arguments."""
        try:
            return cls(id=call_id, name=name, arguments=parse_arguments(text))
        except ArgumentsError:
            return cls(id=call_id, name=name, arguments_text=text)

    @property
    def arguments_error(self) -> str | None:
        """Why the arguments cannot be used, or None when they can."""
        if self.arguments_text is None:
            return None
        try:
            parse_arguments(self.arguments_text)
        except ArgumentsError as error:
            return str(error)
        return None


class Cost(_Wire):
    """US dollars."""

    input: float = 0.0
    output: float = 0.0
    cache_read: float = 0.0
    cache_write: float = 0.0
    total: float = 0.0


class Usage(_Wire):
    """Tokens of one model call; `input` leaves out what was read from or written to the provider's cache."""

    input: TokenCount = 0
    output: TokenCount = 0
    cache_read: TokenCount = 0
    cache_write: TokenCount = 0
    total_tokens: TokenCount = 0
    cost: Cost = Cost()

    @classmethod
    def of(cls, *, input: int = 0, output: int = 0, cache_read: int = 0, cache_write: int = 0) -> "Usage":
        """These counts and their sum; the cost is not known yet."""
        total = input + output + cache_read + cache_write
        return cls(input=input, output=output, cache_read=cache_read, cache_write=cache_write, total_tokens=total)


UserContent = Annotated[TextContent | ImageContent, Field(discriminator="type")]
AssistantContent = Annotated[TextContent | ThinkingContent | ToolCall, Field(discriminator="type")]


class UserMessage(_Wire):
    role: Literal["user"] = "user"
    content: tuple[UserContent, ...]
    timestamp: Timestamp

    @classmethod
    def of(cls, text: str, timestamp: int | None = None) -> "UserMessage":
        """One text block, stamped with `timestamp` or the present."""
        stamp = now_ms() if timestamp is None else timestamp
        return cls(content=(TextContent(text=text),), timestamp=stamp)


class AssistantMessage(_Wire):
    """One response of a model. `error_code` is the failure taxonomy's code when `stop_reason` is `error`."""

    role: Literal["assistant"] = "assistant"
    content: tuple[AssistantContent, ...]
    api: str
    provider: str
    model: str
    usage: Usage
    stop_reason: StopReason
    error_message: Annotated[str | None, _Absent] = None
    error_code: Annotated[str | None, _Absent] = None
    timestamp: Timestamp

    @property
    def text(self) -> str:
        """All text blocks joined; neither thinking nor tool calls."""
        return "".join(block.text for block in self.content if isinstance(block, TextContent))

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(block for block in self.content if isinstance(block, ToolCall))


class ToolResultMessage(_Wire):
    """What a tool answered. `content` goes to the model, `details` to logs and people only."""

    role: Literal["toolResult"] = "toolResult"
    tool_call_id: str
    tool_name: str
    content: tuple[UserContent, ...]
    details: Annotated[JsonValue, _Absent] = None
    is_error: bool
    usage: Annotated[Usage | None, _Absent] = None
    added_tool_names: Annotated[tuple[str, ...] | None, _Absent] = None
    timestamp: Timestamp

    @property
    def text(self) -> str:
        return "".join(block.text for block in self.content if isinstance(block, TextContent))


class CustomMessage(_Wire):
    """A message of any other role; its fields are in `model_extra`. Models see it only if a hook maps it."""

    role: str = Field(min_length=1)

    @field_validator("role")
    @classmethod
    def _not_a_standard_role(cls, role: str) -> str:
        if role in _STANDARD:
            raise ValueError(f"{role!r} is a standard role, not a custom one")
        return role


Message = UserMessage | AssistantMessage | ToolResultMessage | CustomMessage

_STANDARD: Mapping[str, type[UserMessage | AssistantMessage | ToolResultMessage]] = {
    "user": UserMessage,
    "assistant": AssistantMessage,
    "toolResult": ToolResultMessage,
}


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def to_wire(message: Message) -> dict[str, Any]:
    """The JSON form of a message; absent optional fields are left out."""
    return message.model_dump(mode="json", by_alias=True)


def from_wire(data: Mapping[str, Any]) -> Message:
    """The message of a JSON object. Raises `MessageError` naming the field that is wrong."""
    role = data.get("role")
    kind = _STANDARD.get(role, CustomMessage) if isinstance(role, str) else CustomMessage
    try:
        return kind.model_validate(data, by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:8]) or "message"
        raise MessageError(f"{where}: {first['msg']}") from None
