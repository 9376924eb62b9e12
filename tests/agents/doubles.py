"""What the tests of the agent stand on: a model that counts its calls, small tools, a recorder, an event list."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from pilothouse.agents.events import (
    AgentEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
)
from pilothouse.agents.journal import CallResult, PreparedCall
from pilothouse.agents.messages import Message, ToolResultMessage
from pilothouse.agents.turns import Turn
from pilothouse.models.provider import ModelEvent, ModelRequest, TextDelta
from pilothouse.models.script import parse_script
from pilothouse.models.scripted import ScriptedProvider
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

Work = Callable[[ToolInvocation], Awaitable[ToolResult]]

TEXT = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


async def repeat(call: ToolInvocation) -> ToolResult:
    return ToolResult.of(f"said {call.arguments['text']}")


@dataclass
class ATool:
    """A tool that notes each of its calls."""

    name: str = "say"
    work: Work = repeat
    idempotent: bool = False
    execution_mode: ExecutionMode = "parallel"
    parameters: Mapping[str, Any] = field(default_factory=lambda: TEXT)
    description: str = "A tool of a test."
    calls: list[str] = field(default_factory=list)

    async def execute(self, call: ToolInvocation) -> ToolResult:
        self.calls.append(call.id)
        return await self.work(call)


class Model:
    """Answers from a script, by the number of answers in the conversation, and keeps every request."""

    def __init__(self, *turns: Mapping[str, Any]) -> None:
        self._scripted = ScriptedProvider(parse_script(turns))
        self.api, self.provider, self.model = "scripted", "scripted", "scripted"
        self.requests: list[ModelRequest] = []

    @property
    def calls(self) -> int:
        return len(self.requests)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.requests.append(request)
        async for event in self._scripted.stream(request):
            yield event


class InOrder(Model):
    """Answers from a script, by the number of requests: for conversations that are compacted meanwhile."""

    def __init__(self, *turns: Mapping[str, Any]) -> None:
        super().__init__(*turns)
        self._each = [ScriptedProvider(parse_script([turn])) for turn in turns]

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.requests.append(request)
        async for event in self._each[self.calls - 1].stream(replace(request, messages=())):
            yield event


class HangingModel(Model):
    """Begins an answer, sets `begun` after its first delta of the kind `at`, and never ends it."""

    def __init__(self, *turns: Mapping[str, Any], at: type[ModelEvent] = TextDelta) -> None:
        super().__init__(*turns)
        self.begun = asyncio.Event()
        self._at = at

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        async for event in super().stream(request):
            yield event
            if isinstance(event, self._at):
                self.begun.set()
                await asyncio.Event().wait()


def says(text: str) -> dict[str, Any]:
    return {"text": text}


def calls(*calls: tuple[str, str, Mapping[str, Any]], text: str = "") -> dict[str, Any]:
    """A turn of tool calls, each an id, a tool's name and arguments."""
    listed = [{"id": call, "name": name, "arguments": arguments} for call, name, arguments in calls]
    return {"toolCalls": listed} | ({"text": text} if text else {})


@dataclass
class Notes:
    """A Recorder that writes down what it is told, in order."""

    log: list[str] = field(default_factory=list)

    async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
        self.log += [f"record {result.message.tool_call_id}" for result in results]
        self.log.append("append " + " ".join(message.role for message in messages))
        return uuid4()

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        self.log.append(f"intend {call.call.id}")

    async def record(self, result: CallResult) -> None:
        self.log.append(f"record {result.message.tool_call_id}")


@dataclass
class Events:
    """An Emit that keeps all events."""

    seen: list[AgentEvent] = field(default_factory=list)

    async def __call__(self, event: AgentEvent) -> None:
        self.seen.append(event)

    @property
    def names(self) -> list[str]:
        """One word an event: its type, with the role of its message or the id of its call; no updates of
        messages, which every model cuts as it likes."""
        return [_name(event) for event in self.seen if not isinstance(event, MessageUpdate)]

    @property
    def results(self) -> list[ToolResultMessage]:
        """The tool results whose messages ended, in order."""
        ended = [event.message for event in self.seen if isinstance(event, MessageEnd)]
        return [message for message in ended if isinstance(message, ToolResultMessage)]


def _name(event: AgentEvent) -> str:
    match event:
        case MessageStart(message) | MessageEnd(message):
            who = message.tool_call_id if isinstance(message, ToolResultMessage) else message.role
            return f"{event.type} {who}"
        case ToolExecutionStart() | ToolExecutionUpdate() | ToolExecutionEnd():
            return f"{event.type} {event.tool_call_id}"
        case _:
            return event.type


def registry(*tools: ATool) -> ToolRegistry:
    return ToolRegistry(tools or (ATool(),))
