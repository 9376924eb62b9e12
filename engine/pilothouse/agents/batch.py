"""The tool calls of one turn: each gets exactly one result before the turn closes, whatever happens."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pydantic import JsonValue

from pilothouse.agents.abort import cancellations, heeded
from pilothouse.agents.events import (
    Emit,
    MessageEnd,
    MessageStart,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    ignore,
)
from pilothouse.agents.hooks import AfterToolCall, EndedCall, ResultPatch
from pilothouse.agents.journal import CallResult, Recorder
from pilothouse.agents.messages import ToolCall, ToolResultMessage, now_ms
from pilothouse.agents.preflight import Preflight, Ready, Refused, error_result
from pilothouse.agents.turns import Turn
from pilothouse.records.failures import Failed
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

_NOT_BEGUN = "Operation aborted"
_BEGUN = "Operation aborted while the tool ran; what it had done by then is done"


@dataclass(slots=True)
class _Slot:
    """One call on its way to its result."""

    ordinal: int
    call: ToolCall
    result: ToolResultMessage | None = None
    answer: ToolResult | None = None
    announced: bool = False
    unrecorded: bool = False
    failed: Failed | None = None
    """Why it will have no result."""
    running: bool = False
    telling: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while an update is announced."""

    def take(self, answer: ToolResult) -> None:
        """Raises ValueError for an answer that makes no message."""
        self.result = _message(self.call, answer)
        self.answer = answer

    def result_in(self, turn: Turn) -> CallResult:
        if self.result is None:
            raise ValueError(f"the call `{self.call.id}` has no result yet")
        return CallResult(turn, self.ordinal, self.result)

    @property
    def args(self) -> JsonValue:
        return self.call.arguments if self.call.arguments_text is None else self.call.arguments_text


class Batch:
    """Runs the calls of a turn that have no result yet.

    Side by side by default: all are checked in the order of the message, then run at once, and their result
    messages follow in the order of the message. One sequential tool makes the batch go call by call. A result is
    recorded as soon as its tool has ended; that of the last one to end is recorded with the messages.
    """

    def __init__(
        self, turn: Turn, preflight: Preflight, after_tool_call: AfterToolCall, recorder: Recorder, emit: Emit
    ) -> None:
        self._turn = turn
        self._preflight = preflight
        self._after_tool_call = after_tool_call
        self._recorder = recorder
        self._emit = emit
        self.results = turn.appended
        """The results that are in the session, in the order of the calls."""
        first = len(turn.appended)
        calls = () if turn.failed else enumerate(turn.message.tool_calls[first:], first)
        self._slots = [_Slot(ordinal, call, turn.recorded.get(ordinal)) for ordinal, call in calls]

    async def run(self, mode: ExecutionMode = "parallel") -> None:
        """Ends with all results in the session. Whoever is cancelled here calls `abort`. Where a tool raised Failed,
        that is raised once the calls beside it have ended and their results are recorded."""
        for slots in [[slot] for slot in self._slots] if self._sequential(mode) else [self._slots]:
            await self._side_by_side(slots)

    def _sequential(self, mode: ExecutionMode) -> bool:
        tools = (self._preflight.context.tools.find(slot.call.name) for slot in self._slots)
        return mode == "sequential" or any(tool and tool.execution_mode == "sequential" for tool in tools)

    async def _side_by_side(self, slots: list[_Slot]) -> None:
        prepared = [(slot, await self._prepare(slot)) for slot in slots]
        await self._execute_all([(slot, ready) for slot, ready in prepared if ready], slots)
        for slot in slots:
            if slot.failed:
                raise slot.failed
        await self._append(slots)

    async def _prepare(self, slot: _Slot) -> Ready | None:
        if slot.result is not None:
            return None
        await self._emit(ToolExecutionStart(slot.call.id, slot.call.name, slot.args))
        slot.announced = True
        try:
            return await self._preflight.check(self._turn.message, slot.ordinal, slot.call)
        except Refused as refused:
            slot.take(refused.result)
            await self._settle(slot)
            return None

    async def _execute_all(self, ready: list[tuple[_Slot, Ready]], slots: list[_Slot]) -> None:
        if len(ready) == 1:
            await self._execute(*ready[0], slots)
            return
        try:
            async with asyncio.TaskGroup() as group:
                for slot, call in ready:
                    group.create_task(self._execute(slot, call, slots))
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None

    async def _execute(self, slot: _Slot, ready: Ready, slots: list[_Slot]) -> None:
        """Leaves the result of the last of the slots to be recorded with the messages."""
        cancelled = cancellations()
        if await self._intend(slot, ready):
            await self._call(slot, ready)
        if slot.failed:
            return
        if not slot.unrecorded or any(other.result is None for other in slots):
            await self._record(slot)
        if cancellations() > cancelled:
            raise asyncio.CancelledError("a tool kept the cancellation to itself")

    async def _intend(self, slot: _Slot, ready: Ready) -> bool:
        slot.unrecorded = True
        try:
            await self._recorder.intend(self._turn, ready.prepared)
        except ValueRefused as error:
            slot.unrecorded = False
            slot.take(error_result("MalformedArguments", f"Not executed: {error}."))
        return slot.unrecorded

    async def _call(self, slot: _Slot, ready: Ready) -> None:
        try:
            slot.take(await self._run(slot, ready))
        except Failed as error:
            slot.failed = error
        except ValueError as error:
            slot.take(error_result("ToolRaised", str(error)))
        else:
            await self._override(slot, ready)

    async def _override(self, slot: _Slot, ready: Ready) -> None:
        """Cancelled here, the call keeps the result of its tool."""
        if slot.answer is None:
            return
        context = self._preflight.context
        call = EndedCall(self._turn.message, slot.ordinal, slot.call, ready.arguments, context, slot.answer)
        try:
            if patch := await heeded(self._after_tool_call(call)):
                slot.take(_patched(slot.answer, patch))
        except StoreError:
            raise
        except Exception as error:
            slot.take(error_result("AfterToolCallFailed", f"The check after the call failed: {error}"))

    async def _run(self, slot: _Slot, ready: Ready) -> ToolResult:
        async def on_update(partial: ToolResult) -> None:
            async with slot.telling:
                if slot.running:
                    await self._emit(ToolExecutionUpdate(slot.call.id, slot.call.name, slot.args, partial))

        cancelled = cancellations()
        slot.running = True
        try:
            call = ToolInvocation(slot.call.id, ready.arguments, on_update, self._turn.id, slot.ordinal)
            return await ready.tool.execute(call)
        except (StoreError, Failed):
            raise
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and cancellations() > cancelled:
                raise
            return error_result("ToolRaised", str(error) or type(error).__name__)
        finally:
            async with slot.telling:
                slot.running = False

    async def _record(self, slot: _Slot) -> None:
        """Records the result of a call that has begun, then announces the call's end."""
        if slot.unrecorded:
            try:
                await self._recorder.record(slot.result_in(self._turn))
            except ValueRefused as error:
                slot.take(_unstorable(error))
                await self._recorder.record(slot.result_in(self._turn))
            slot.unrecorded = False
        await self._settle(slot)

    async def _settle(self, slot: _Slot) -> None:
        """Announces the end of a call whose start was announced, once."""
        if slot.announced and slot.answer is not None:
            slot.announced = False
            await self._emit(ToolExecutionEnd(slot.call.id, slot.call.name, slot.answer))

    async def _append(self, slots: list[_Slot]) -> None:
        """Appends the results there are, records the one that is not, and announces them."""
        ended = [slot for slot in slots if slot.result is not None]
        if not ended:
            return
        try:
            messages = await self._write(ended)
        except ValueRefused as error:
            for slot in ended:
                if slot.unrecorded:
                    slot.take(_unstorable(error))
            messages = await self._write(ended)
        for slot in ended:
            slot.unrecorded = False
            await self._settle(slot)
        self.results += messages
        for message in messages:
            await self._emit(MessageStart(message))
            await self._emit(MessageEnd(message))

    async def _write(self, slots: list[_Slot]) -> tuple[ToolResultMessage, ...]:
        messages = tuple(slot.result for slot in slots if slot.result is not None)
        await self._recorder.append(messages, [slot.result_in(self._turn) for slot in slots if slot.unrecorded])
        return messages

    async def abort(self) -> None:
        """Gives each call without a result one that says so. Best effort: what the store does not take now is
        found unfinished by whoever resumes."""
        for slot in self._slots:
            if slot.result is None:
                slot.take(error_result("Aborted", _BEGUN if slot.unrecorded else _NOT_BEGUN))
            with suppress(StoreError):
                await self._record(slot)
            slot.unrecorded = False
            await self._settle(slot)
        with suppress(StoreError):
            await self._append(self._slots[len(self.results) - len(self._turn.appended) :])

    async def give_up(self) -> None:
        """As `abort`, where those who listen cannot be told any more."""
        self._emit = ignore
        with suppress(Exception):
            await self.abort()


def _patched(result: ToolResult, patch: ResultPatch) -> ToolResult:
    fields = {name: value for name in ResultPatch.__slots__ if (value := getattr(patch, name)) is not None}
    return replace(result, **fields)


def _unstorable(error: ValueRefused) -> ToolResult:
    return error_result("ToolRaised", f"The result of the tool cannot be stored: {error}")


def _message(call: ToolCall, result: ToolResult) -> ToolResultMessage:
    hint = {"terminate": True} if result.terminate else {}
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=result.content,
        details=result.details,
        is_error=result.is_error,
        usage=result.usage,
        added_tool_names=result.added_tool_names or None,
        timestamp=now_ms(),
        **hint,
    )
