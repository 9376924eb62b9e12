"""The run of a harness as the loop sees it: what each turn is made of, and what the hooks and queues say of it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pilothouse.agents.context import Context
from pilothouse.agents.harness.compacting import Compactor
from pilothouse.agents.harness.config import HarnessConfig
from pilothouse.agents.harness.hooked import HookedModel
from pilothouse.agents.harness.hooks import HarnessHooks, Starting
from pilothouse.agents.harness.pending import PendingWrites
from pilothouse.agents.harness.queues import QueueName, Queues
from pilothouse.agents.harness.settings import Settings
from pilothouse.agents.hooks import Block, EndedCall, EndedTurn, GatedCall, Hooks, NextTurn, ResultPatch
from pilothouse.agents.journal import Recorder
from pilothouse.agents.loop import LoopConfig
from pilothouse.agents.messages import Message
from pilothouse.agents.queue import QueueMode
from pilothouse.agents.session import SessionTree, build_context
from pilothouse.models.provider import ModelProvider
from pilothouse.records.sessions import Entry


@dataclass(frozen=True, slots=True)
class Ground:
    """What the turns of a harness stand on. `drained`, `compacted` and `activate` tell the harness what was taken from
    a queue, what was compacted, and which tools a result adds."""

    tree: SessionTree
    config: HarnessConfig
    settings: Settings
    hooks: HarnessHooks
    queues: Queues
    pending: PendingWrites
    compactor: Compactor
    drained: Callable[[], Awaitable[None]]
    compacted: Callable[[Entry, bool], Awaitable[None]]
    activate: Callable[[Sequence[str]], Awaitable[None]]


class Turns:
    """The turns of one run."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._seen = -1
        self._compacted = 0

    async def start(self, said: Sequence[Message]) -> Sequence[Message]:
        """The prompts of the run: what was queued for it, what was said, and what a hook adds."""
        ground = self._ground
        event = Starting(said, await ground.settings.prompt(), ground.settings.resources)
        change = await ground.hooks.before_agent_start.last(event)
        if change:
            ground.settings.system_prompt = change.system_prompt
        queued = await self._take("nextTurn", "all")
        return [*queued, *said, *(change.messages if change else ())]

    async def context(self) -> Context:
        """What the session and the settings say now."""
        settings = self._ground.settings
        return Context(await settings.prompt(), self._messages(), settings.registry)

    def config(self, recorder: Recorder) -> LoopConfig:
        config, settings = self._ground.config, self._ground.settings
        hooks = Hooks(
            transform_context=self._transform,
            before_tool_call=self._before,
            after_tool_call=self._after,
            prepare_next_turn=self._prepare,
            should_stop_after_turn=config.should_stop_after_turn,
            get_steering_messages=self._steer,
            get_follow_up_messages=self._follow_up,
        )
        options = replace(config.options, thinking=settings.thinking_level)
        return LoopConfig(self._model(), recorder, hooks, options, config.response_schema, config.tool_calls_per_turn)

    def _model(self) -> ModelProvider:
        ground = self._ground
        before = ground.hooks.before_provider_request
        return HookedModel(ground.settings.model, before) if before else ground.settings.model

    def _messages(self) -> Sequence[Message]:
        session = build_context(self._ground.tree.branch(), self._ground.config.projectors)
        self._seen, self._compacted = self._ground.pending.written, session.compacted
        return session.messages

    async def _transform(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Each request is checked: what it will hold is in the session by now."""
        ground = self._ground
        if ground.compactor.due(messages, self._compacted, await ground.settings.prompt()):
            await ground.compacted(*await ground.compactor.run())
            messages = self._messages()
            self._seen = -1  # the loop itself has the old ones until the next turn
        return await ground.hooks.context.last(messages) or messages

    async def _before(self, call: GatedCall) -> Block | None:
        return await self._ground.hooks.tool_call.first(call)

    async def _after(self, call: EndedCall) -> ResultPatch | None:
        return await self._ground.hooks.tool_result.last(call)

    async def _prepare(self, turn: EndedTurn) -> NextTurn:
        ground = self._ground
        added = [name for result in turn.tool_results for name in result.added_tool_names or ()]
        if added:
            await ground.activate(added)
        await ground.pending.flush()
        context = replace(turn.context, system=await ground.settings.prompt(), tools=ground.settings.registry)
        if self._seen != ground.pending.written:
            context = replace(context, messages=self._messages())
        return NextTurn(context, self._model(), ground.settings.thinking_level)

    async def _steer(self) -> Sequence[Message]:
        return await self._take("steer", self._ground.config.steering_mode)

    async def _follow_up(self) -> Sequence[Message]:
        queued = await self._take("followUp", self._ground.config.follow_up_mode)
        return queued or await self._ground.config.get_follow_up_messages()

    async def _take(self, queue: QueueName, mode: QueueMode) -> Sequence[Message]:
        taken = await self._ground.queues.take(queue, mode)
        if taken:
            await self._ground.drained()
        return taken
