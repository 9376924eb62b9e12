"""The conversation that is measured, as every engine has it, and how ours does.

A model that answers at once calls a tool that does nothing, one call a turn for `TURNS` turns, then says its answer.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import uuid4

from bench.ground import new_run
from pilothouse.agents.bounds import Limits
from pilothouse.agents.task import AgentTask, run_agent
from pilothouse.models.script import parse_script
from pilothouse.models.scripted import ScriptedProvider
from pilothouse.records.runs import AttemptRef, NewStep, StepId
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult
from pilothouse.workflows.moves import start

TURNS = 50
PROMPT = "Count, one number at a time."
ANSWER = "done"

Converse: TypeAlias = Callable[[], Awaitable[str]]
"""Holds the conversation, from its prompt to its answer; when it returns, all that is stored has been stored."""

Engine: TypeAlias = Callable[[], AbstractAsyncContextManager[Converse]]
"""Makes everything ready for one conversation."""


def pilothouse(store: RunStore) -> Engine:
    """The loop of an agent step, with all that it records in the store."""
    script = parse_script([*map(_turn, range(TURNS)), {"text": ANSWER}])
    tools = ToolRegistry([Count()])

    @asynccontextmanager
    async def engine() -> AsyncIterator[Converse]:
        async with _attempt(store) as attempt:
            task = AgentTask(uuid4(), PROMPT, limits=Limits(turns=TURNS + 1), step=_STEP)

            async def converse() -> str:
                result = await run_agent(task, attempt, ScriptedProvider(script), tools)
                return str(result.failure or result.outputs["text"])

            yield converse

    return engine


@dataclass(frozen=True)
class Count:
    """Takes a number and answers at once."""

    name: str = "count"
    description: str = "Counts."
    idempotent: bool = False
    execution_mode: ExecutionMode = "parallel"

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

    async def execute(self, call: ToolInvocation) -> ToolResult:
        return ToolResult.of("ok")


_STEP = StepId("count")


@asynccontextmanager
async def _attempt(store: RunStore) -> AsyncIterator[AttemptStore]:
    """The open attempt of the one step of a new run."""
    new = new_run([NewStep(_STEP, "invokeAgent")])
    async with store.lead(f"run/{new.run}") as leader:
        run = (await store.create_run(new)).ref
        move = start((await store.snapshot(run)).steps[_STEP], 1, None)
        await store.commit(run, leader.epoch, move)
        yield store.attempt_store(AttemptRef(run, move.openings[0].attempt, 1))


def _turn(number: int) -> Mapping[str, Any]:
    return {"toolCalls": [{"id": f"call-{number}", "name": "count", "arguments": {"number": number}}]}
