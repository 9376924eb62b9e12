"""The tools and the model of a session, which count what they do."""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

from pilothouse.agents.messages import AssistantMessage, Message, ToolResultMessage, to_wire
from pilothouse.models.provider import ModelEvent, ModelRequest
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.doubles import ATool, Model, Work, registry
from tests.agents.kills.ledger import Ledger
from tests.agents.kills.plans import KINDS, Kind

Meanwhile: TypeAlias = Callable[[str], Awaitable[None]]
"""What happens in the world while the call of an id runs."""


def tools(ledger: Ledger, meanwhile: Meanwhile) -> ToolRegistry:
    """One of each kind."""
    works = {name: _work(kind, ledger, meanwhile) for name, kind in KINDS.items()}
    return registry(*(ATool(name, works[name], kind.idempotent, kind.mode) for name, kind in KINDS.items()))


def _work(kind: Kind, ledger: Ledger, meanwhile: Meanwhile) -> Work:
    async def work(call: ToolInvocation) -> ToolResult:
        await asyncio.sleep(0)
        ledger.note("effect", call.id)
        await meanwhile(call.id)
        if kind.raises:
            raise OSError(f"{call.id} failed")
        return ToolResult.of(f"did {call.id}".ljust(kind.size, "."))

    return work


class CountedModel(Model):
    """Notes of each request the number of its turn, what it shows, and whether each call in it has its one result."""

    def __init__(self, turns: Iterable[Mapping[str, Any]], ledger: Ledger) -> None:
        super().__init__(*turns)
        self._ledger = ledger

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self._ledger.note("asked", [request.turn, digest(request.messages), paired(request.messages)])
        async for event in super().stream(request):
            yield event


def timeless(message: Mapping[str, Any]) -> dict[str, Any]:
    """The wire form of a message without its time."""
    return {name: value for name, value in message.items() if name != "timestamp"}


def digest(messages: Iterable[Message]) -> str:
    """The same for the same conversation, whenever it was held."""
    said = [timeless(to_wire(message)) for message in messages]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def paired(messages: Iterable[Message]) -> bool:
    """Whether the results after each answer are those of its calls, one each, in their order."""
    asked: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            if not asked or asked.pop(0) != message.tool_call_id:
                return False
        elif asked:
            return False
        elif isinstance(message, AssistantMessage):
            asked = [call.id for call in message.tool_calls]
    return not asked
