"""The agent loop: model, tools, model, until an answer. No I/O of its own.

Each message is recorded before its end is announced, each tool call before and after its effect; so a process
that dies anywhere leaves a conversation that another one continues.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pilothouse.agents.abort import heeded
from pilothouse.agents.batch import Batch
from pilothouse.agents.context import Context
from pilothouse.agents.events import (
    AgentEnd,
    AgentEvent,
    AgentStart,
    Emit,
    MessageEnd,
    MessageStart,
    TurnEnd,
    TurnStart,
)
from pilothouse.agents.hooks import EndedTurn, Hooks, NextTurn
from pilothouse.agents.journal import Recorder
from pilothouse.agents.messages import AssistantMessage, Message
from pilothouse.agents.model_call import ModelCall
from pilothouse.agents.preflight import Preflight
from pilothouse.agents.repair import repaired
from pilothouse.agents.turns import Turn, failed, terminates
from pilothouse.models.provider import ModelOptions, ModelProvider, ModelRequest
from pilothouse.records.failures import Failed
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError
from pilothouse.tools.tool import ExecutionMode


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """Who answers, who records and who decides. `tool_calls_per_turn`: calls beyond it get an error result.
    `tool_execution`: with `sequential` no two calls run side by side, whatever their tools allow."""

    provider: ModelProvider
    recorder: Recorder
    hooks: Hooks = field(default_factory=Hooks)
    options: ModelOptions = field(default_factory=ModelOptions)
    response_schema: Mapping[str, Any] | None = None
    tool_calls_per_turn: int = 5
    tool_execution: ExecutionMode = "parallel"


async def run_loop(
    context: Context,
    config: LoopConfig,
    emit: Emit,
    *,
    prompts: Sequence[Message] = (),
    resume: Turn | None = None,
) -> Sequence[Message]:
    """Runs to the end and returns the messages that it added.

    Begins with `prompts`, or at the turn `resume`, the last of `context.messages`, whose calls are not all
    answered or after which nothing was decided; with neither, at once with a model call, and then the conversation
    must end with something to answer, else ValueError. Ends after a response without tool calls, or that failed,
    and where a hook says so. Cancelling the task is the abort: the turn is closed with a result for every call, then
    CancelledError is raised. An error of the recorder, or Failed from a tool, ends the loop without another write or
    event; an error of a hook or a subscriber without another event, after a result for every call was recorded.
    """
    if not prompts and resume is None:
        _check_answerable(context.messages)
    loop = _Loop(context, config, emit)
    await emit(AgentStart())
    try:
        await loop.run(prompts, resume)
    except asyncio.CancelledError:
        await emit(AgentEnd(loop.added))
        raise
    await emit(AgentEnd(loop.added))
    return loop.added


def _check_answerable(messages: Sequence[Message]) -> None:
    if not messages:
        raise ValueError("there is no message to answer; give a prompt")
    if isinstance(last := messages[-1], AssistantMessage) and not failed(last):
        raise ValueError("the conversation ends with an answer; give a prompt")


class _Loop:
    def __init__(self, context: Context, config: LoopConfig, emit: Emit) -> None:
        self._system = context.system
        self._messages = list(context.messages)
        self._tools = context.tools
        self._config = config
        self._hooks = config.hooks
        self._recorder = config.recorder
        self._provider = config.provider
        self._options = config.options
        self._announce = emit
        self.added: list[Message] = []

    async def run(self, prompts: Sequence[Message], resume: Turn | None) -> None:
        pending = await self._continue(resume) if resume else await self._turn(prompts, steer=True)
        while pending is not None:
            pending = await self._turn(pending)

    async def _continue(self, turn: Turn) -> Sequence[Message] | None:
        if turn.closed:
            return await self._next(turn)
        await self._emit(TurnStart())
        return await self._close(turn, announced=True)

    async def _turn(self, pending: Sequence[Message], *, steer: bool = False) -> Sequence[Message] | None:
        """Returns what the next turn begins with, or None."""
        await self._emit(TurnStart())
        turn = await self._ask(pending, steer=steer)
        return await self._close(turn)

    async def _ask(self, pending: Sequence[Message], *, steer: bool) -> Turn:
        """Cancelled here, the turn gets an answer that says so, and ends."""
        call = ModelCall(self._provider, self._emit)
        try:
            await self._add(pending)
            if steer:
                await self._add(await heeded(self._hooks.get_steering_messages()))
            return await self._answer(call)
        except asyncio.CancelledError:
            with suppress(StoreError):
                turn = await self._record(await call.abort())
                await self._emit(MessageEnd(turn.message))
                await self._emit(TurnEnd(turn.message))
            raise

    async def _add(self, messages: Sequence[Message]) -> None:
        """All are recorded at once, so a process that dies leaves all that begins a turn, or nothing of it."""
        if not messages:
            return
        await self._recorder.append(messages)
        self._keep(messages)
        for message in messages:
            await self._emit(MessageStart(message))
            await self._emit(MessageEnd(message))

    async def _answer(self, call: ModelCall) -> Turn:
        message = await heeded(call.answer(await self._request()))
        try:
            return await self._record(message)
        except ValueRefused as why:
            return await self._record(call.unstorable(why))

    async def _record(self, message: AssistantMessage) -> Turn:
        turn = Turn(await self._recorder.append((message,)), message)
        self._keep((message,))
        return turn

    async def _close(self, turn: Turn, *, announced: bool = False) -> Sequence[Message] | None:
        """Runs the calls of the turn that have no result; returns what the next turn begins with, or None."""
        preflight = Preflight(self._context, self._hooks.before_tool_call, self._config.tool_calls_per_turn)
        batch = Batch(turn, preflight, self._hooks.after_tool_call, self._recorder, self._emit)
        try:
            if not announced:
                await self._emit(MessageEnd(turn.message))
            await batch.run(self._config.tool_execution)
        except asyncio.CancelledError:
            await batch.abort()
            await self._end(turn, batch)
            raise
        except (StoreError, Failed):
            raise
        except Exception:
            await batch.give_up()
            raise
        return await self._next(await self._end(turn, batch))

    async def _end(self, turn: Turn, batch: Batch) -> Turn:
        self._keep(batch.results[len(turn.appended) :])
        await self._emit(TurnEnd(turn.message, batch.results))
        return replace(turn, appended=batch.results)

    async def _next(self, turn: Turn) -> Sequence[Message] | None:
        if turn.failed or await self._stops(turn):
            return None
        if steering := await heeded(self._hooks.get_steering_messages()):
            return steering
        if turn.appended and not all(map(terminates, turn.appended)):
            return ()
        return await heeded(self._hooks.get_follow_up_messages()) or None

    async def _stops(self, turn: Turn) -> bool:
        """Whether a hook ends the loop; it sees what another one prepared."""
        if change := await heeded(self._hooks.prepare_next_turn(self._ended(turn))):
            self._change(change)
        return await heeded(self._hooks.should_stop_after_turn(self._ended(turn)))

    def _change(self, change: NextTurn) -> None:
        if change.context:
            self._system, self._tools = change.context.system, change.context.tools
            self._messages = list(change.context.messages)
        self._provider = change.model or self._provider
        if change.thinking_level:
            self._options = replace(self._options, thinking=change.thinking_level)

    def _keep(self, messages: Sequence[Message]) -> None:
        self._messages.extend(messages)
        self.added.extend(messages)

    def _ended(self, turn: Turn) -> EndedTurn:
        return EndedTurn(turn.message, turn.appended, self._context, tuple(self.added))

    @property
    def _context(self) -> Context:
        return Context(self._system, tuple(self._messages), self._tools)

    async def _request(self) -> ModelRequest:
        messages = await heeded(self._hooks.transform_context(tuple(self._messages)))
        legal = await heeded(self._hooks.convert_to_llm(messages))
        return ModelRequest(
            self._system, repaired(legal), self._tools.specs, self._options, self._config.response_schema
        )

    async def _emit(self, event: AgentEvent) -> None:
        await heeded(self._announce(event))
