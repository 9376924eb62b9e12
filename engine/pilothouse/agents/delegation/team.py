"""The agents of one attempt: the one that the step invokes, and those that it and they may ask."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from pilothouse.agents.definition import Definition, ToolGround, make_provider, open_tools
from pilothouse.agents.delegation.account import Account
from pilothouse.agents.delegation.metered import Metered
from pilothouse.agents.delegation.origin import Origin
from pilothouse.agents.delegation.tool import AgentTool, Caller
from pilothouse.agents.events import AgentEvent, Emit
from pilothouse.agents.hooks import BeforeToolCall
from pilothouse.agents.session import SessionTree
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.models.provider import ModelProvider
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Ready:
    """The model and the tools of an agent. It has an account where it asks others, or was asked."""

    model: ModelProvider
    tools: ToolRegistry
    account: Account | None

    def counted(self, emit: Emit) -> Emit:
        """Counts the agent's turns before others hear of them."""
        account = self.account
        if account is None:
            return emit

        async def announce(event: AgentEvent) -> None:
            account.observe(event)
            await emit(event)

        return announce


@dataclass(frozen=True, slots=True)
class Team:
    """What they share: the store, the ground for tools and the gate before them. `members` are all that can be asked,
    by name. Each has a model, tools and a session of its own."""

    store: AttemptStore
    ground: ToolGround
    members: Mapping[str, Definition]
    before_tool_call: BeforeToolCall | None = None
    asked: set[UUID] = field(default_factory=set)
    """The sessions of those that were asked."""

    async def run(self, definition: Definition, task: AgentTask, emit: Emit, origin: Origin) -> AgentResult:
        """Runs one of them, for the call that asked it, as `run_agent` does. Raises Failed, too, where its model or its
        tools cannot be had."""
        async with self.opened(definition, task, origin) as ready:
            counted = ready.counted(emit)
            return await run_agent(task, self.store, ready.model, ready.tools, counted, self.before_tool_call)

    @asynccontextmanager
    async def opened(
        self, definition: Definition, task: AgentTask, origin: Origin | None = None
    ) -> AsyncIterator[Ready]:
        """One of them, ready to run. `origin` is the call that asked it, None for the step's own agent."""
        model, account, agents = self._model(definition.spec), None, list[AgentTool]()
        if origin is not None or definition.spec.agents:
            account = await self._account(task, origin)
            model = Metered(model, account)
            caller = Caller(definition.name, task, account, origin.depth if origin else 0)
            agents = [AgentTool(self.members[name], caller, self.run) for name in definition.spec.agents]
        async with open_tools(definition.spec, self.ground, agents) as tools:
            yield Ready(model, tools, account)

    async def _account(self, task: AgentTask, origin: Origin | None) -> Account:
        tree = await SessionTree.open(self.store, task.session, task.attempt, task.session_name, task.step)
        if origin is None:
            return Account.of(tree, task.limits)
        self.asked.add(task.session)
        await origin.note(tree)
        return Account.of(tree, task.limits, origin.account)

    def _model(self, spec: AgentSpec) -> ModelProvider:
        source = spec.model.api_key_from
        return make_provider(spec, None if source is None else partial(self.ground.secret, source.secret_key_ref))
