"""What the loop asks of others while it runs: its gate, its stop and its follow-ups."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from pydantic import JsonValue

from pilothouse.agents.messages import AssistantMessage, Message, ToolCall, ToolResultMessage


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that is about to run: the `ordinal`-th of its message, with arguments that were checked."""

    message: AssistantMessage
    ordinal: int
    call: ToolCall
    arguments: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Block:
    """The call must not run; the model is told the reason."""

    reason: str


class Gate(Protocol):
    """Decides on each call before it runs (`beforeToolCall`). An exception blocks the call,
    except one of the store, which ends the loop."""

    async def before_tool_call(self, call: GatedCall) -> Block | None: ...


class Gates:
    """Several gates as one: the first that blocks decides, and nothing after it can undo that."""

    def __init__(self, *gates: Gate) -> None:
        self._gates = gates

    async def before_tool_call(self, call: GatedCall) -> Block | None:
        for gate in self._gates:
            if block := await gate.before_tool_call(call):
                return block
        return None


ShouldStop: TypeAlias = Callable[[AssistantMessage, Sequence[ToolResultMessage]], Awaitable[bool]]
"""Asked after each turn (`shouldStopAfterTurn`); true ends the loop."""

FollowUps: TypeAlias = Callable[[], Awaitable[Sequence[Message]]]
"""Asked where the loop would end (`getFollowUpMessages`); what it returns starts another turn."""


async def never_stop(message: AssistantMessage, results: Sequence[ToolResultMessage]) -> bool:
    return False


async def no_follow_ups() -> Sequence[Message]:
    return ()
