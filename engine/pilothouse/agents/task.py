"""An agent's task, from its prompt to its outputs: what one attempt of an agent step runs."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pydantic import JsonValue

from pilothouse.agents.abort import Signal
from pilothouse.agents.answers import AnswerSchema
from pilothouse.agents.bounds import Bounds, Limits
from pilothouse.agents.errors import Withdrawn
from pilothouse.agents.events import AgentEvent, Emit, MessageEnd, ignore
from pilothouse.agents.harness import AgentHarness, HarnessConfig, StoredQueues
from pilothouse.agents.harness.events import HarnessEvent, SessionCompact
from pilothouse.agents.hooks import BeforeToolCall, GetMessages, ShouldStopAfterTurn, first_block
from pilothouse.agents.listeners import Listener
from pilothouse.agents.messages import Message, UserMessage
from pilothouse.agents.progress import Progress
from pilothouse.agents.prompt import system_prompt, user_prompt
from pilothouse.agents.resume import find_position, outcome_unknown, worked
from pilothouse.agents.session import CompactionSettings, SessionTree
from pilothouse.models.provider import ModelOptions, ModelProvider
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import StepId
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class AgentTask:
    """What the agent is to do, as plain data. `attempt` is the number of the step's attempt, from 1: the
    same number continues the session, the next one starts a branch at its first message."""

    session: UUID
    message: str
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    instructions: str = ""
    description: str = ""
    output_schema: Mapping[str, Any] | None = None
    limits: Limits = field(default_factory=Limits)
    options: ModelOptions = field(default_factory=ModelOptions)
    compaction: CompactionSettings | None = None
    attempt: int = 1
    step: StepId | None = None
    session_name: str | None = None
    """Of a session that passes from run to run."""


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How the task ended. `outputs`: text, usage, turns, session, and data if there is an outputs schema; of
    a task that failed they say how far it came."""

    outputs: Mapping[str, JsonValue]
    failure: Failure | None = None


async def run_agent(
    task: AgentTask,
    store: AttemptStore,
    provider: ModelProvider,
    tools: ToolRegistry,
    emit: Emit = ignore,
    before_tool_call: BeforeToolCall | None = None,
) -> AgentResult:
    """Runs the task, or continues it where the session stands: nothing that is recorded is done again.

    Raises SchemaRefused for an outputs schema that is none, and what the store raises: after Superseded
    nothing more is written, done or announced. Cancelling closes the turn and raises CancelledError.
    """
    progress = Progress(Bounds(task.limits), _schema(task))
    tree = await SessionTree.open(store, task.session, task.attempt, task.session_name, task.step)
    position = await find_position(store, tree)
    for message in position.messages:
        progress.observe(message)
    for entry in filter(tree.own, tree.branch()):
        progress.spend(entry)
    if position.unknown:
        return AgentResult(progress.outputs(task.session), outcome_unknown(position.unknown))
    harness = harness_of(task, tree, provider, tools, progress.should_stop, progress.follow_ups)
    harness.hooks.tool_call.add(first_block(*filter(None, (progress.bounds.before_tool_call, before_tool_call))))
    harness.subscribe(_observed(tree, progress, emit))
    try:
        async with asyncio.timeout(_time_left(task.limits, tree)) as clock:
            await _play(harness, _prompt(task), bool(position.messages))
    except Failed as error:
        progress.failure = error.failure
    except TimeoutError:
        if not clock.expired():
            raise
        progress.failure = _too_late(task.limits)
    return AgentResult(progress.outputs(task.session), progress.failure)


async def _play(harness: AgentHarness, prompt: Message, begun: bool) -> None:
    """Where a message is taken back on its way into the session, all goes on without it."""
    while True:
        with suppress(Withdrawn):
            await (harness.continue_() if begun else harness.prompt(prompt))
            return
        begun = bool((await find_position(harness.tree.store, harness.tree)).messages)


def _schema(task: AgentTask) -> AnswerSchema | None:
    return None if task.output_schema is None else AnswerSchema(task.output_schema)


def _system(task: AgentTask) -> str:
    return system_prompt(task.instructions, task.description, task.output_schema)


def _prompt(task: AgentTask) -> Message:
    return UserMessage.of(user_prompt(task.message, task.arguments))


def harness_of(
    task: AgentTask,
    tree: SessionTree,
    provider: ModelProvider,
    tools: ToolRegistry,
    should_stop: ShouldStopAfterTurn,
    follow_ups: GetMessages,
) -> AgentHarness:
    """The harness of the task on its session, which hears what waits in the session's queues."""
    config = HarnessConfig(
        provider,
        tools,
        _system(task),
        options=task.options,
        compaction=task.compaction,
        response_schema=task.output_schema,
        tool_calls_per_turn=task.limits.tool_calls_per_turn,
        step=task.step,
        should_stop_after_turn=should_stop,
        get_follow_up_messages=follow_ups,
    )
    return AgentHarness(tree, config, StoredQueues(tree))


def _observed(tree: SessionTree, progress: Progress, emit: Emit) -> Listener[HarnessEvent]:
    """State first, then subscribers."""

    async def announce(event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, MessageEnd):
            progress.observe(event.message)
        if isinstance(event, SessionCompact):
            progress.spend(tree[event.entry])
        if isinstance(event, AgentEvent):
            await emit(event)

    return announce


def _time_left(limits: Limits, tree: SessionTree) -> float | None:
    return None if limits.duration is None else limits.duration - worked(tree).total_seconds()


def _too_late(limits: Limits) -> Failure:
    text = f"the task took longer than its budget of {limits.duration:g} seconds"
    return Failure(FailureCode.TMO, text, "TimeLimit")
