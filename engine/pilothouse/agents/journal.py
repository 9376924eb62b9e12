"""What makes a turn durable: each message and each tool call is in the store before anyone acts on it.

A turn with one tool call takes four commits: the assistant message, the intent before the effect, the result
after it, and the toolResult messages once the batch is complete.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from pydantic import JsonValue

from pilothouse.agents.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, to_wire
from pilothouse.agents.session import SessionTree
from pilothouse.agents.turns import Turn
from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.runs import StepId
from pilothouse.records.sessions import NewToolCall, ToolOutcome
from pilothouse.store.ports import AttemptStore


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that passed every check. `canonical` are the exact bytes (RFC 8785) that will be executed."""

    ordinal: int
    call: ToolCall
    canonical: bytes
    idempotent: bool


class Recorder(Protocol):
    """Where the loop writes before it announces. Each call returns when the write is durable."""

    async def append(self, messages: Sequence[Message]) -> UUID:
        """Appends messages to the conversation; returns the id of the last one's entry."""
        ...

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        """Before the effect."""
        ...

    async def record(self, turn: Turn, ordinal: int, result: ToolResultMessage) -> None:
        """After the effect; the result is that of an intended call."""
        ...


class Journal:
    """The Recorder over a session of the store; it tells the run's event list, too."""

    def __init__(self, store: AttemptStore, tree: SessionTree, step: StepId | None) -> None:
        self._store = store
        self._tree = tree
        self._step = step

    async def append(self, messages: Sequence[Message]) -> UUID:
        return await self._tree.append(messages, tuple(self._turn_events(messages)))

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        intent = NewToolCall(turn.id, call.ordinal, call.call.id, call.call.name, call.canonical, call.idempotent)
        started = self._event(EventType.TOOL_STARTED, tool=call.call.name, call=call.call.id)
        await self._store.intend(self._tree.id, intent, (started,))

    async def record(self, turn: Turn, ordinal: int, result: ToolResultMessage) -> None:
        outcome = ToolOutcome(turn.id, ordinal, to_wire(result), result.is_error)
        finished = self._event(
            EventType.TOOL_FINISHED, tool=result.tool_name, call=result.tool_call_id, isError=result.is_error
        )
        await self._store.record(self._tree.id, outcome, (finished,))

    def _turn_events(self, messages: Iterable[Message]) -> Iterable[NewEvent]:
        for message in messages:
            if isinstance(message, AssistantMessage):
                yield self._event(EventType.TURN_RECORDED, **_turn_data(message))

    def _event(self, kind: EventType, **data: JsonValue) -> NewEvent:
        return NewEvent(kind, self._step, data)


def _turn_data(message: AssistantMessage) -> dict[str, Any]:
    return {
        "stopReason": message.stop_reason,
        "tokens": message.usage.total_tokens,
        "toolCalls": len(message.tool_calls),
    }
