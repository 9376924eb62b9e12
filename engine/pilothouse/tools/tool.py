"""The one protocol between the agent loop and a tool."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol
from uuid import UUID

from pydantic import JsonValue

from pilothouse.agents.messages import ImageContent, TextContent, Usage

ExecutionMode = Literal["parallel", "sequential"]

NO_TURN = UUID(int=0)
"""Stands for the turn of a call that no model made."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered. `content` goes to the model, `details` to logs and people only.

    `terminate` is a hint: the loop ends after a batch whose every result has it. `usage` is what the tool
    itself spent on models. `added_tool_names` names tools that the model may call from now on.
    """

    content: tuple[TextContent | ImageContent, ...]
    details: JsonValue = None
    is_error: bool = False
    terminate: bool = False
    usage: Usage | None = None
    added_tool_names: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str, details: JsonValue = None, *, is_error: bool = False) -> "ToolResult":
        """A result of one text block."""
        return cls((TextContent(text=text),), details, is_error)


@dataclass(frozen=True, slots=True)
class ToolInvocation:
    """One call: the model's id for it, and arguments that satisfy the tool's `parameters`.

    `on_update` tells subscribers of a partial result; after the tool has returned it does nothing. `turn`, an entry of
    the session, and `ordinal` name the call for good: a model may give two calls one id, and a call that is made again
    after a restart has them still.
    """

    id: str
    arguments: Mapping[str, JsonValue]
    on_update: Callable[[ToolResult], Awaitable[None]]
    turn: UUID = NO_TURN
    ordinal: int = 0


class Tool(Protocol):
    """Something a model may call. `parameters` is a JSON schema of an object.

    `idempotent` promises that running a call again, after its outcome was lost, does no harm; without the
    promise such a call is never repeated. One `sequential` tool makes the whole batch of its turn sequential.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    @property
    def idempotent(self) -> bool: ...

    @property
    def execution_mode(self) -> ExecutionMode: ...

    async def execute(self, call: ToolInvocation) -> ToolResult:
        """Runs the call. An exception becomes an error result with its text; cancelling the task aborts.

        `Failed` is the exception to that: the call stays without a result, and the task ends in the failure.
        """
        ...
