"""The bounds of one task: what it may spend, and the signs that it goes in circles.

Everything is counted from the messages of the branch, so a process that resumes the task counts on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from pilothouse.agents.hooks import Block, GatedCall
from pilothouse.agents.messages import AssistantMessage, Message, ToolResultMessage, Usage
from pilothouse.agents.preflight import CALL_FAILURES
from pilothouse.agents.turns import failed
from pilothouse.agents.usage import total_of
from pilothouse.records.failures import Failure, FailureCode


@dataclass(frozen=True, slots=True)
class Limits:
    """What one task may use; None sets no limit. `duration` in seconds is the time that processes worked on
    it. `cost` is in US dollars. `consecutive_errors`: turns in a row in which no call could be made at all.
    `repeated_calls`: turns in a row that ask for exactly the same calls; the last of them is not executed.
    `empty_responses`: responses in a row that neither say nor call anything. With `double_confirmation` the model is
    asked whether its answer is the last word."""

    turns: int = 20
    tool_calls: int | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    duration: float | None = None
    tool_calls_per_turn: int = 5
    consecutive_errors: int | None = 3
    repeated_calls: int | None = 3
    empty_responses: int | None = 3
    double_confirmation: bool = False

    def lowered(self, turns: int, duration: float | None) -> "Limits":
        """These, where they are not above those."""
        given = [each for each in (self.duration, duration) if each is not None]
        return replace(self, turns=min(self.turns, turns), duration=min(given, default=None))


class Bounds:
    """Counts, blocks calls that are over a limit, and says which limit ends the task."""

    def __init__(self, limits: Limits) -> None:
        self.usage = Usage()
        self.turns = 0
        self.empty = 0
        """How many responses in a row, up to the latest, were empty."""
        self.limits = limits
        self._cost = Decimal(0)
        self._calls = 0
        self._latest: Sequence[tuple[object, ...]] = ()
        self._repeats = 0
        self._latest_failed = 0
        self._errors = 0

    def observe(self, message: Message) -> None:
        """Takes note of a message that was added to the branch."""
        if isinstance(message, AssistantMessage):
            self.spend(message.usage)
            if not failed(message):
                self.turns += 1
                self.empty = 0 if message.text.strip() or message.tool_calls else self.empty + 1
                self._observe_calls(message)
        elif isinstance(message, ToolResultMessage):
            self.spend(message.usage)
            self._observe_result(message)

    async def before_tool_call(self, call: GatedCall) -> Block | None:
        if _reached(self._repeats, self.limits.repeated_calls):
            return Block(f"Not executed: the same call was made {self._repeats} times in a row.")
        index = self._calls - len(call.message.tool_calls) + call.ordinal
        if _reached(index, self.limits.tool_calls):
            return Block(f"Not executed: the budget of {self.limits.tool_calls} tool calls is used up.")
        return None

    def exceeded(self) -> Failure | None:
        """The limit that forbids another turn; asked where there would be one."""
        return self._circling() or self._spent()

    def _circling(self) -> Failure | None:
        limits = self.limits
        if _reached(self._repeats, limits.repeated_calls):
            return _stuck(f"the model made the same call {self._repeats} times in a row", "LoopDetected")
        if _reached(self._errors, limits.consecutive_errors):
            return _stuck(f"no tool call could be made in {self._errors} turns in a row", "ErrorLimit")
        if _reached(self.empty, limits.empty_responses):
            return _stuck(f"the model neither said nor called anything {self.empty} times in a row", "EmptyResponse")
        return None

    def _spent(self) -> Failure | None:
        limits = self.limits
        if limits.tool_calls is not None and self._calls > limits.tool_calls:
            return _spent(f"{limits.tool_calls} tool calls", "ToolCallLimit")
        if limits.cost is not None and self._cost >= limits.cost:
            return _spent(f"{limits.cost} US dollars", "CostLimit")
        if _reached(self.usage.total_tokens, limits.tokens):
            return _spent(f"{limits.tokens} tokens", "TokenLimit")
        if _reached(self.turns, limits.turns):
            return _spent(f"{limits.turns} turns", "TurnLimit")
        return None

    def _observe_calls(self, message: AssistantMessage) -> None:
        calls = [(call.name, call.arguments, call.arguments_text) for call in message.tool_calls]
        self._repeats = self._repeats + 1 if calls and calls == self._latest else min(len(calls), 1)
        self._latest = calls
        self._latest_failed = 0
        self._calls += len(calls)

    def _observe_result(self, result: ToolResultMessage) -> None:
        details = result.details
        if not isinstance(details, dict) or details.get("error") not in CALL_FAILURES:
            self._errors = 0
            return
        self._latest_failed += 1
        if self._latest_failed == len(self._latest):
            self._errors += 1

    def spend(self, usage: Usage | None) -> None:
        """Takes note of what was asked of a model beside the turns."""
        if usage:
            self.usage = total_of((self.usage, usage))
            # What each call cost is a float made of an exact number; their sum as floats would not be exact.
            self._cost += Decimal(str(usage.cost.total))


def _reached(count: int, limit: int | None) -> bool:
    return limit is not None and count >= limit


def _stuck(text: str, reason: str) -> Failure:
    return Failure(FailureCode.EXE, text, reason)


def _spent(what: str, reason: str) -> Failure:
    return Failure(FailureCode.RES, f"the budget of {what} is used up, and the task is not done", reason)
