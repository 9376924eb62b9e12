"""A harness on a session of a store, and all that it tells."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pilothouse.agents.abort import Signal
from pilothouse.agents.events import MessageUpdate
from pilothouse.agents.harness import AgentHarness, HarnessConfig
from pilothouse.agents.harness.events import HarnessEvent
from pilothouse.agents.messages import AssistantMessage, Message, TextContent, UserMessage
from pilothouse.agents.session import SessionTree
from pilothouse.models.provider import ModelProvider
from pilothouse.tools.tool import Tool
from tests.agents.desk import Desk

E = TypeVar("E")
A = ("A", "say", {"text": "a"})
B = ("B", "say", {"text": "b"})


def said(text: str) -> UserMessage:
    return UserMessage.of(text, 1)


@dataclass
class Heard:
    seen: list[HarnessEvent] = field(default_factory=list)

    async def __call__(self, event: HarnessEvent, signal: Signal) -> None:
        self.seen.append(event)

    @property
    def names(self) -> list[str]:
        return [event.type for event in self.seen if not isinstance(event, MessageUpdate)]

    def all_of(self, kind: type[E]) -> list[E]:
        return [event for event in self.seen if isinstance(event, kind)]


async def harness_on(desk: Desk, model: ModelProvider, *tools: Tool, **config: Any) -> tuple[AgentHarness, Heard]:
    """A new process on the desk's session."""
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    harness = AgentHarness(tree, HarnessConfig(model, tools, **config))
    heard = Heard()
    harness.subscribe(heard)
    return harness, heard


def texts(messages: Sequence[Message]) -> list[str]:
    """What users and models said, in order."""
    return [
        block.text
        for message in messages
        if isinstance(message, UserMessage | AssistantMessage)
        for block in message.content
        if isinstance(block, TextContent)
    ]


async def entries_of(desk: Desk) -> list[str]:
    """The types of the stored entries, of messages their roles."""
    session = await desk.stored()
    return [entry.body["message"]["role"] if entry.type == "message" else entry.type for entry in session.entries]
