"""The events of the agent loop, for subscribers. They are announcements: what they tell is already recorded.

The JSON form is the agent harness's: `type` in snake_case, fields in camelCase.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from pydantic import JsonValue

from pilothouse.agents.blocks import BlockEnd, BlockStart, StreamEvent
from pilothouse.agents.messages import AssistantMessage, Message, ToolResultMessage, to_wire
from pilothouse.models.provider import ToolCallEnd, ToolCallStart
from pilothouse.tools.tool import ToolResult


@dataclass(frozen=True, slots=True)
class AgentStart:
    """Once, first."""

    type: ClassVar = "agent_start"

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type}


@dataclass(frozen=True, slots=True)
class TurnStart:
    """Before each turn: one model response and its tool calls."""

    type: ClassVar = "turn_start"

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type}


@dataclass(frozen=True, slots=True)
class MessageStart:
    message: Message

    type: ClassVar = "message_start"

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type, "message": to_wire(self.message)}


@dataclass(frozen=True, slots=True)
class MessageUpdate:
    """A piece of an assistant message arrived; `message` is all that has arrived so far."""

    message: AssistantMessage
    delta: StreamEvent

    type: ClassVar = "message_update"

    def to_wire(self) -> dict[str, Any]:
        return {
            "type": self.type,
            "message": to_wire(self.message),
            "assistantMessageEvent": _stream_to_wire(self.delta),
        }


@dataclass(frozen=True, slots=True)
class MessageEnd:
    """The message is final and in the session."""

    message: Message

    type: ClassVar = "message_end"

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type, "message": to_wire(self.message)}


@dataclass(frozen=True, slots=True)
class ToolExecutionStart:
    """A call is attempted, before it is looked up or checked. `args` are as the model wrote them."""

    tool_call_id: str
    tool_name: str
    args: JsonValue

    type: ClassVar = "tool_execution_start"

    def to_wire(self) -> dict[str, Any]:
        return _call_to_wire(self) | {"args": self.args}


@dataclass(frozen=True, slots=True)
class ToolExecutionUpdate:
    tool_call_id: str
    tool_name: str
    args: JsonValue
    partial_result: ToolResult

    type: ClassVar = "tool_execution_update"

    def to_wire(self) -> dict[str, Any]:
        return _call_to_wire(self) | {"args": self.args, "partialResult": _result_to_wire(self.partial_result)}


@dataclass(frozen=True, slots=True)
class ToolExecutionEnd:
    tool_call_id: str
    tool_name: str
    result: ToolResult

    type: ClassVar = "tool_execution_end"

    def to_wire(self) -> dict[str, Any]:
        body = {"result": _result_to_wire(self.result), "isError": self.result.is_error}
        return _call_to_wire(self) | body


@dataclass(frozen=True, slots=True)
class TurnEnd:
    message: AssistantMessage
    tool_results: tuple[ToolResultMessage, ...] = ()

    type: ClassVar = "turn_end"

    def to_wire(self) -> dict[str, Any]:
        results = [to_wire(result) for result in self.tool_results]
        return {"type": self.type, "message": to_wire(self.message), "toolResults": results}


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """Once, last. `messages` are those that this run of the loop added."""

    messages: Sequence[Message]

    type: ClassVar = "agent_end"

    def to_wire(self) -> dict[str, Any]:
        return {"type": self.type, "messages": [to_wire(message) for message in self.messages]}


AgentEvent: TypeAlias = (
    AgentStart
    | TurnStart
    | MessageStart
    | MessageUpdate
    | MessageEnd
    | ToolExecutionStart
    | ToolExecutionUpdate
    | ToolExecutionEnd
    | TurnEnd
    | AgentEnd
)

Emit: TypeAlias = Callable[[AgentEvent], Awaitable[None]]
"""Where the loop's events go; the loop waits until each is taken."""


async def ignore(event: AgentEvent) -> None:
    """Takes events for nobody."""


def _call_to_wire(event: ToolExecutionStart | ToolExecutionUpdate | ToolExecutionEnd) -> dict[str, Any]:
    return {"type": event.type, "toolCallId": event.tool_call_id, "toolName": event.tool_name}


def _result_to_wire(result: ToolResult) -> dict[str, Any]:
    body: dict[str, Any] = {"content": [block.model_dump(mode="json", by_alias=True) for block in result.content]}
    if result.details is not None:
        body["details"] = result.details
    if result.usage is not None:
        body["usage"] = result.usage.model_dump(mode="json", by_alias=True)
    if result.added_tool_names:
        body["addedToolNames"] = list(result.added_tool_names)
    if result.terminate:
        body["terminate"] = True
    return body


def _stream_to_wire(delta: StreamEvent) -> dict[str, Any]:
    body: dict[str, Any] = {"type": delta.type, "contentIndex": delta.content_index}
    if isinstance(delta, ToolCallEnd):
        return body | {"toolCall": delta.tool_call.model_dump(mode="json", by_alias=True)}
    if isinstance(delta, ToolCallStart | BlockStart):
        return body
    if isinstance(delta, BlockEnd):
        return body | {"content": delta.content}
    return body | {"delta": delta.delta}
