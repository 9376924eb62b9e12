"""The checks that a tool call passes before it runs, in order; the first that fails answers the call."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

import rfc8785
from pydantic import JsonValue

from pilothouse.agents.abort import heeded
from pilothouse.agents.context import Context
from pilothouse.agents.hooks import BeforeToolCall, GatedCall
from pilothouse.agents.journal import PreparedCall
from pilothouse.agents.messages import AssistantMessage, ToolCall
from pilothouse.store.errors import StoreError
from pilothouse.tools.tool import Tool, ToolResult

CALL_FAILURES = frozenset({"MalformedArguments", "UnknownTool", "InvalidArguments", "Truncated", "ToolRaised"})
"""What `details.error` of an error result says where the call itself went wrong, so that a loop that only
fails can be told from one whose tools answer with errors."""


_INEXACT = "the arguments hold an integer beyond 2^53, which JSON cannot hold exactly; send it as a string"


@dataclass(frozen=True, slots=True)
class Ready:
    """A call that may run."""

    tool: Tool
    prepared: PreparedCall
    arguments: dict[str, JsonValue]
    """What the canonical bytes say: a call runs what its record holds."""


class Refused(Exception):  # noqa: N818 - the outcome of a check, always turned into a result
    """Answers the call with an error result that says `text`."""

    def __init__(self, reason: str, text: str, *, terminate: bool = False) -> None:
        super().__init__(text)
        self.result = replace(error_result(reason, text), terminate=terminate)


def error_result(reason: str, text: str) -> ToolResult:
    """An error result that the loop itself makes; `details.error` tells people and bounds why."""
    return ToolResult.of(text, {"error": reason}, is_error=True)


@dataclass(frozen=True, slots=True)
class Preflight:
    """Raises Refused for a call that must not run."""

    context: Context
    before_tool_call: BeforeToolCall
    calls_per_turn: int

    async def check(self, message: AssistantMessage, ordinal: int, call: ToolCall) -> Ready:
        self._check_turn(message, ordinal)
        tool = self._find(call)
        gated = GatedCall(message, ordinal, call, json.loads(_written(call)), self.context)
        if problems := self.context.tools.problems(call.name, gated.arguments):
            raise Refused("InvalidArguments", f"The arguments do not fit `{call.name}`: {problems}.")
        await self._ask(gated)
        canonical = _canonical(gated.arguments)
        return Ready(tool, PreparedCall(ordinal, call, canonical, tool.idempotent), json.loads(canonical))

    def _check_turn(self, message: AssistantMessage, ordinal: int) -> None:
        if message.stop_reason == "length":
            raise Refused("Truncated", "Not executed: the response was cut off at its length limit. Call again.")
        if ordinal >= self.calls_per_turn:
            raise Refused(
                "TooManyCalls",
                f"Not executed: at most {self.calls_per_turn} tool calls run in one turn. Call again in the next.",
            )

    def _find(self, call: ToolCall) -> Tool:
        if tool := self.context.tools.find(call.name):
            return tool
        known = ", ".join(self.context.tools.names) or "none"
        raise Refused("UnknownTool", f"Tool {call.name} not found. The tools are: {known}.")

    async def _ask(self, call: GatedCall) -> None:
        try:
            block = await heeded(self.before_tool_call(call))
        except StoreError:
            raise
        except Exception as error:
            raise Refused("GateFailed", f"Not executed: the check before it failed: {error}") from error
        if block:
            raise Refused("Blocked", block.reason or "Tool execution was blocked", terminate=block.terminate)


def _written(call: ToolCall) -> bytes:
    if call.arguments_text is not None:
        raise Refused("MalformedArguments", f"Not executed: {call.arguments_error or _INEXACT}.")
    return _canonical(call.arguments)


def _canonical(arguments: Mapping[str, JsonValue]) -> bytes:
    try:
        return rfc8785.dumps(dict(arguments))
    except rfc8785.CanonicalizationError as error:
        raise Refused("MalformedArguments", f"Not executed: the arguments are no JSON: {error}.") from None
