"""The state of an agent: what it is made of, and what its events make of it."""

from collections.abc import Iterable

from pilothouse.agents.events import (
    AgentEnd,
    AgentEvent,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
    TurnEnd,
)
from pilothouse.agents.messages import Message
from pilothouse.models.provider import ModelProvider, ThinkingLevel
from pilothouse.tools.tool import Tool


class AgentState:
    """The first five attributes may be changed at any time; a run uses them from its next request on, and the
    messages from the next run on. The others are read."""

    def __init__(self, model: ModelProvider) -> None:
        self.system_prompt = ""
        self.model = model
        self.thinking_level: ThinkingLevel = "off"
        self.is_streaming = False
        self.streaming_message: Message | None = None
        self.pending_tool_calls: frozenset[str] = frozenset()
        self.error_message: str | None = None
        self._tools: tuple[Tool, ...] = ()
        self._messages: list[Message] = []

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self._tools

    @tools.setter
    def tools(self, tools: Iterable[Tool]) -> None:
        self._tools = tuple(tools)

    @property
    def messages(self) -> list[Message]:
        return self._messages

    @messages.setter
    def messages(self, messages: Iterable[Message]) -> None:
        self._messages = list(messages)

    def begin(self) -> None:
        """A run begins."""
        self.is_streaming = True
        self.streaming_message = None
        self.error_message = None

    def finish(self) -> None:
        """The run is over, and all have heard of it."""
        self.is_streaming = False
        self.streaming_message = None
        self.pending_tool_calls = frozenset()

    def reduce(self, event: AgentEvent) -> None:
        match event:
            case MessageStart(message) | MessageUpdate(message):
                self.streaming_message = message
            case MessageEnd(message):
                self.streaming_message = None
                self._messages.append(message)
            case ToolExecutionStart(call):
                self.pending_tool_calls |= {call}
            case ToolExecutionEnd(call):
                self.pending_tool_calls -= {call}
            case TurnEnd(answer) if answer.error_message:
                self.error_message = answer.error_message
            case AgentEnd():
                self.streaming_message = None
            case _:
                pass
