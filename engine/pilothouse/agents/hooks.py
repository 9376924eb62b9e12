"""What the loop asks of others while it runs.

A hook is cancelled with the loop: that is its abort signal. An exception of a hook before or after a tool call
becomes that call's error result, except one of the store; an exception of any other hook ends the loop.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from pilothouse.agents.context import Context
from pilothouse.agents.convert import ModelMessage, convert_to_llm
from pilothouse.agents.messages import AssistantMessage, Message, ToolCall, ToolResultMessage, Usage, UserContent
from pilothouse.models.provider import ModelProvider, ThinkingLevel
from pilothouse.tools.tool import ToolResult


@dataclass(frozen=True, slots=True)
class GatedCall:
    """A call that is about to run: the `ordinal`-th of its message, with arguments that were checked. A hook may
    change them in place; they are not checked again."""

    message: AssistantMessage
    ordinal: int
    call: ToolCall
    arguments: dict[str, JsonValue]
    context: Context


@dataclass(frozen=True, slots=True)
class Block:
    """The call must not run; the model is told the reason. `terminate` as a tool's result has it."""

    reason: str = ""
    terminate: bool = False


@dataclass(frozen=True, slots=True)
class EndedCall(GatedCall):
    """A call that has run, and its result."""

    result: ToolResult


@dataclass(frozen=True, slots=True)
class ResultPatch:
    """Takes the place of these fields of a result; None leaves the field as it is, nothing is merged."""

    content: tuple[UserContent, ...] | None = None
    details: JsonValue = None
    usage: Usage | None = None
    is_error: bool | None = None
    terminate: bool | None = None


@dataclass(frozen=True, slots=True)
class EndedTurn:
    """A turn after its end. `new_messages`: what this run of the loop has added so far."""

    message: AssistantMessage
    tool_results: Sequence[ToolResultMessage]
    context: Context
    new_messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class NextTurn:
    """What the loop uses from the next request on; None leaves it as it is."""

    context: Context | None = None
    model: ModelProvider | None = None
    thinking_level: ThinkingLevel | None = None


TransformContext: TypeAlias = Callable[[Sequence[Message]], Awaitable[Sequence[Message]]]
ConvertToLlm: TypeAlias = Callable[[Sequence[Message]], Awaitable[Sequence[ModelMessage]]]
BeforeToolCall: TypeAlias = Callable[[GatedCall], Awaitable[Block | None]]
AfterToolCall: TypeAlias = Callable[[EndedCall], Awaitable[ResultPatch | None]]
PrepareNextTurn: TypeAlias = Callable[[EndedTurn], Awaitable[NextTurn | None]]
ShouldStopAfterTurn: TypeAlias = Callable[[EndedTurn], Awaitable[bool]]
GetMessages: TypeAlias = Callable[[], Awaitable[Sequence[Message]]]


def first_block(*hooks: BeforeToolCall) -> BeforeToolCall:
    """Several hooks as one: the first that blocks decides, and nothing after it can undo that."""

    async def before_tool_call(call: GatedCall) -> Block | None:
        for hook in hooks:
            if block := await hook(call):
                return block
        return None

    return before_tool_call


async def _same(messages: Sequence[Message]) -> Sequence[Message]:
    return messages


async def _convert(messages: Sequence[Message]) -> Sequence[ModelMessage]:
    return convert_to_llm(messages)


async def _pass(call: GatedCall) -> Block | None:
    return None


async def _keep(call: EndedCall) -> ResultPatch | None:
    return None


async def _go_on(turn: EndedTurn) -> NextTurn | None:
    return None


async def _never(turn: EndedTurn) -> bool:
    return False


async def _none() -> Sequence[Message]:
    return ()


@dataclass(frozen=True, slots=True)
class Hooks:
    """All hooks of the loop; those left out change nothing."""

    transform_context: TransformContext = _same
    """Changes what one request sees; the conversation stays as it is."""
    convert_to_llm: ConvertToLlm = _convert
    """Makes of it what models know."""
    before_tool_call: BeforeToolCall = _pass
    after_tool_call: AfterToolCall = _keep
    """Not asked where the tool was not run, nor after an abort."""
    prepare_next_turn: PrepareNextTurn = _go_on
    should_stop_after_turn: ShouldStopAfterTurn = _never
    """Asked after `prepare_next_turn`; true ends the loop, and no queue is asked."""
    get_steering_messages: GetMessages = _none
    """Asked before the first request and after each turn; what it gives begins the next turn."""
    get_follow_up_messages: GetMessages = _none
    """Asked where the loop would end; what it gives begins another turn."""
