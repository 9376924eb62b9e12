"""The agent loop: model, tools, model, until an answer. No I/O of its own.

Each message is recorded before its end is announced, each tool call before and after its effect; so a process
that dies anywhere leaves a conversation that another one continues.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pilothouse.agents.batch import Batch
from pilothouse.agents.convert import convert_to_llm
from pilothouse.agents.events import (
    AgentEnd,
    AgentStart,
    Emit,
    MessageEnd,
    MessageStart,
    TurnEnd,
    TurnStart,
)
from pilothouse.agents.hooks import FollowUps, Gate, ShouldStop, never_stop, no_follow_ups
from pilothouse.agents.journal import Recorder
from pilothouse.agents.messages import AssistantMessage, Message
from pilothouse.agents.model_call import ModelCall
from pilothouse.agents.preflight import Preflight
from pilothouse.agents.repair import repaired
from pilothouse.agents.turns import Turn, terminates
from pilothouse.models.provider import ModelOptions, ModelProvider, ModelRequest
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError
from pilothouse.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Context:
    """What the model is to see. `messages` are the conversation so far."""

    system: str
    messages: Sequence[Message]
    tools: ToolRegistry


@dataclass(frozen=True, slots=True)
class LoopConfig:
    """Who answers, who records and who decides. `tool_calls_per_turn`: calls beyond it get an error result."""

    provider: ModelProvider
    recorder: Recorder
    gate: Gate | None = None
    should_stop: ShouldStop = never_stop
    follow_ups: FollowUps = no_follow_ups
    options: ModelOptions = field(default_factory=ModelOptions)
    response_schema: Mapping[str, Any] | None = None
    tool_calls_per_turn: int = 5


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
    answered or after which nothing was decided; with neither, at once with a model call. Ends after a response
    without tool calls, or that failed, and where a hook says so. Cancelling the task is the abort: the turn is
    closed with a result for every call, then CancelledError is raised. An error of the recorder, or Failed from a
    tool, ends the loop without another write or event.
    """
    loop = _Loop(context, config, emit)
    await emit(AgentStart())
    try:
        await loop.run(prompts, resume)
    except asyncio.CancelledError:
        await emit(AgentEnd(loop.added))
        raise
    await emit(AgentEnd(loop.added))
    return loop.added


class _Loop:
    def __init__(self, context: Context, config: LoopConfig, emit: Emit) -> None:
        self._system = context.system
        self._messages = list(context.messages)
        self._tools = context.tools
        self._config = config
        self._emit = emit
        self._preflight = Preflight(context.tools, config.gate, config.tool_calls_per_turn)
        self.added: list[Message] = []

    async def run(self, prompts: Sequence[Message], resume: Turn | None) -> None:
        pending: Sequence[Message] | None = prompts
        if resume:
            pending = await self._continue(resume)
        while pending is not None:
            await self._emit(TurnStart())
            await self._add(pending)
            turn = await self._ask()
            pending = await self._close(turn)

    async def _continue(self, turn: Turn) -> Sequence[Message] | None:
        if turn.closed:
            return await self._next(turn)
        await self._emit(TurnStart())
        return await self._close(turn)

    async def _add(self, messages: Sequence[Message]) -> None:
        for message in messages:
            await self._emit(MessageStart(message))
            await self._config.recorder.append((message,))
            self._keep((message,))
            await self._emit(MessageEnd(message))

    async def _ask(self) -> Turn:
        call = ModelCall(self._config.provider, self._emit)
        try:
            message = await call.answer(self._request())
        except asyncio.CancelledError:
            with suppress(StoreError):
                turn = await self._answered(await call.abort())
                await self._emit(TurnEnd(turn.message))
            raise
        try:
            return await self._answered(message)
        except ValueRefused as why:
            return await self._answered(call.unstorable(why))

    async def _answered(self, message: AssistantMessage) -> Turn:
        turn = Turn(await self._config.recorder.append((message,)), message)
        self._keep((message,))
        await self._emit(MessageEnd(message))
        return turn

    async def _close(self, turn: Turn) -> Sequence[Message] | None:
        """Runs the calls of the turn that have no result; returns what the next turn begins with, or None."""
        if turn.failed:
            await self._emit(TurnEnd(turn.message))
            return None
        batch = Batch(turn, self._preflight, self._config.recorder, self._emit)
        try:
            await batch.run()
        except asyncio.CancelledError:
            await self._end(turn, batch)
            raise
        return await self._next(await self._end(turn, batch))

    async def _end(self, turn: Turn, batch: Batch) -> Turn:
        self._keep(batch.results[len(turn.appended) :])
        await self._emit(TurnEnd(turn.message, batch.results))
        return replace(turn, appended=batch.results)

    async def _next(self, turn: Turn) -> Sequence[Message] | None:
        if turn.failed or await self._config.should_stop(turn.message, turn.appended):
            return None
        if turn.appended and not all(map(terminates, turn.appended)):
            return ()
        return await self._config.follow_ups() or None

    def _keep(self, messages: Sequence[Message]) -> None:
        self._messages.extend(messages)
        self.added.extend(messages)

    def _request(self) -> ModelRequest:
        return ModelRequest(
            self._system,
            repaired(convert_to_llm(self._messages)),
            self._tools.specs,
            self._config.options,
            self._config.response_schema,
        )
