"""What makes a turn durable: each message and each tool call is in the store before anyone acts on it.

A turn with one tool call takes three commits: the assistant message, the intent before the effect, and the result
after it together with its toolResult message. Of several calls at once each result has a commit of its own, but for
the last one: that goes with the messages of all.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from uuid import UUID

from pydantic import JsonValue

from pilothouse.agents.errors import Withdrawn
from pilothouse.agents.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, to_wire
from pilothouse.agents.session import SessionTree
from pilothouse.agents.turns import Turn
from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.runs import StepId
from pilothouse.records.sessions import NewToolCall, ToolOutcome
from pilothouse.store.errors import Conflict, Superseded
from pilothouse.store.ports import AttemptStore


@dataclass(frozen=True, slots=True)
class PreparedCall:
    """A call that passed every check. `canonical` are the exact bytes (RFC 8785) that will be executed."""

    ordinal: int
    call: ToolCall
    canonical: bytes
    idempotent: bool


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of an intended call, the `ordinal`-th of its turn."""

    turn: Turn
    ordinal: int
    message: ToolResultMessage


class Recorder(Protocol):
    """Where the loop writes before it announces. Each call returns when the write is durable."""

    async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
        """Appends messages to the conversation, and records results as `record` does, in one write; returns
        the id of the last message's entry."""
        ...

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        """Before the effect."""
        ...

    async def record(self, result: CallResult) -> None:
        """After the effect."""
        ...


class Inbox(Protocol):
    """Where messages came from that nobody said in this process."""

    def items(self, messages: Sequence[Message]) -> Sequence[UUID]:
        """The rows of the store that hold them, of those that were taken from the inbox."""
        ...

    async def withdrawn(self, items: Sequence[UUID]) -> bool:
        """Whether one of the rows does not wait any more."""
        ...

    async def delivered(self, messages: Sequence[Message]) -> None:
        """The messages, the same objects that were taken, are in the session now; others change nothing."""
        ...


class Journal:
    """The Recorder over a session of the store; it tells the run's event list, too. What comes from the inbox is
    delivered by the write that appends it; raises Withdrawn where that was taken back meanwhile."""

    def __init__(self, store: AttemptStore, tree: SessionTree, step: StepId | None, inbox: Inbox) -> None:
        self._store = store
        self._tree = tree
        self._step = step
        self._inbox = inbox

    async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
        events = (*map(self._finished, results), *self._turn_events(messages))
        outcomes = [_outcome(result) for result in results]
        items = self._inbox.items(messages)
        try:
            entry = await self._tree.append(messages, events, outcomes, items)
        except Superseded:
            raise
        except Conflict:
            if items and await self._inbox.withdrawn(items):
                raise Withdrawn("a message was taken back before it was delivered") from None
            raise
        await self._inbox.delivered(messages)
        return entry

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        intent = NewToolCall(turn.id, call.ordinal, call.call.id, call.call.name, call.canonical, call.idempotent)
        started = self._event(EventType.TOOL_STARTED, tool=call.call.name, call=call.call.id)
        await self._store.intend(self._tree.id, intent, (started,))

    async def record(self, result: CallResult) -> None:
        await self._store.record(self._tree.id, _outcome(result), (self._finished(result),))

    def _finished(self, result: CallResult) -> NewEvent:
        message = result.message
        return self._event(
            EventType.TOOL_FINISHED, tool=message.tool_name, call=message.tool_call_id, isError=message.is_error
        )

    def _turn_events(self, messages: Iterable[Message]) -> Iterable[NewEvent]:
        for message in messages:
            if isinstance(message, AssistantMessage):
                yield self._event(EventType.TURN_RECORDED, **_turn_data(message))

    def _event(self, kind: EventType, **data: JsonValue) -> NewEvent:
        return NewEvent(kind, self._step, data)


def _outcome(result: CallResult) -> ToolOutcome:
    return ToolOutcome(result.turn.id, result.ordinal, to_wire(result.message), result.message.is_error)


def _turn_data(message: AssistantMessage) -> dict[str, Any]:
    return {
        "stopReason": message.stop_reason,
        "tokens": message.usage.total_tokens,
        "toolCalls": len(message.tool_calls),
    }
