"""`chat`: a run of one agent step whose prompts a person types."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pilothouse.api.agent import Agent
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.cli.agents import LocalAgents
from pilothouse.cli.chat.conversation import Conversation
from pilothouse.cli.chat.keyboard import Keyboard
from pilothouse.cli.chat.screen import Screen
from pilothouse.cli.command import PAUSED, CommandError, complete, tell
from pilothouse.cli.driver import secrets_of
from pilothouse.cli.manifests import Manifests, read
from pilothouse.cli.names import name_of, tenant_of
from pilothouse.cli.origin import Origin
from pilothouse.cli.run import closure_of, new_run
from pilothouse.cli.sources import LocalSources
from pilothouse.cli.validate import examine, told
from pilothouse.cli.where import Where
from pilothouse.records.runs import Run
from pilothouse.records.sessions import named_session
from pilothouse.records.states import RunState
from pilothouse.store.errors import Conflict, NotFound
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.local.runner import Runner


@dataclass(frozen=True, slots=True)
class Request:
    """With whom, of which files; `session` is the name of a conversation that goes on, None for a new one."""

    agent: str
    files: Sequence[Path]
    session: str | None
    namespace: str


def chat(where: Where, request: Request) -> int:
    """`pilothouse chat`."""

    async def command() -> int:
        async with Evaluator() as evaluator:
            manifests = await asyncio.to_thread(read, list(request.files), request.namespace)
            if problems := told(await examine(manifests, evaluator)):
                raise CommandError("\n".join(["nothing was begun", *problems]))
            name = request.session or f"chat-{secrets.token_hex(4)}"
            closure = _closure(request, manifests, name)
            where.make()
            async with where.store() as store:
                run = await _run(where, store, request, name, closure)
                return await _converse(store, evaluator, run, where, manifests, name)

    return complete(command)


async def _converse(
    store: RunStore, evaluator: Evaluator, run: Run, where: Where, manifests: Manifests, session: str
) -> int:
    keyboard, screen = Keyboard(), Screen(sys.stdin.isatty())

    def executors(closure: Closure, wake: Callable[[], None]) -> Mapping[str, Executor]:
        sources = LocalSources(closure.config_maps, secrets_of(manifests, run.namespace))
        how = Conversation(keyboard, screen).carry_out
        return {"invokeAgent": LocalAgents(where.state / "workspaces", store, sources, wake, tell, how)}

    tell(f"session {session}; /help lists what can be done beside talking")
    try:
        ended = await Runner(store, evaluator, executors, tell).drive(run.ref)
    except Conflict:
        raise CommandError(f"another process has the session {session}, in {name_of(run)}") from None
    except asyncio.CancelledError:
        tell(f"the conversation is kept; go on with --session {session}")
        return PAUSED
    tell(f"the conversation is kept; go on with --session {session}")
    if ended.state is not RunState.SUCCEEDED:
        raise CommandError(f"{name_of(ended)} {ended.state.value}: {ended.failure or 'no reason was recorded'}")
    return 0


async def _run(where: Where, store: RunStore, request: Request, session: str, closure: Closure) -> Run:
    """A new run, or the one of this conversation whose process was ended."""
    tenant, workflow = await tenant_of(store, request.namespace), f"chat-{request.agent}"
    for run in await store.runs(tenant, workflow=workflow, unfinished=True):
        if _session_of(run) == session:
            return run
    held = await _holder(store, tenant, named_session(tenant, session))
    if held is not None:
        raise CommandError(f"{name_of(held)} has the session {session}; wait for its end, or steer it")
    new = new_run(tenant, request.namespace, workflow, closure, {})
    Origin.of(request.files).keep(where, new.run)
    return await store.create_run(new)


def _session_of(run: Run) -> str | None:
    steps = Closure.from_json(run.closure).workflow.steps or ()
    return next((step.invoke_agent.session for step in steps if step.invoke_agent), None)


async def _holder(store: RunStore, tenant: UUID, session: UUID) -> Run | None:
    """The run whose attempt has the session."""
    try:
        holder = (await store.session_store().session(tenant, session)).holder
    except NotFound:
        return None
    return None if holder is None else (await store.snapshot(holder.run)).run


def _closure(request: Request, manifests: Manifests, session: str) -> Closure:
    agents, space = manifests.named(Agent, request.namespace), request.namespace
    if request.agent not in agents:
        there = ", ".join(sorted(agents)) or "none"
        raise CommandError(f"the files hold no Agent `{request.agent}` of namespace {space}; they hold: {there}")
    invoke = {"agentRef": {"name": request.agent}, "session": session}
    spec = WorkflowSpec.model_validate({"steps": [{"name": "chat", "invokeAgent": invoke}]})
    return closure_of(spec, manifests, space)
