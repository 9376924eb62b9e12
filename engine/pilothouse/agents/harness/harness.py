"""The harness: one agent on one session. Every message, and every change of what it is made of, is kept there."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pilothouse.agents.abort import Signal, cancellations
from pilothouse.agents.errors import AgentError
from pilothouse.agents.events import AgentEnd, AgentEvent, Emit, TurnEnd
from pilothouse.agents.harness.compacting import Compactor
from pilothouse.agents.harness.config import HarnessConfig
from pilothouse.agents.harness.events import (
    Aborted,
    HarnessEvent,
    ModelUpdate,
    QueueUpdate,
    ResourcesUpdate,
    SavePoint,
    SessionCompact,
    SessionTreeMoved,
    Settled,
    ThinkingLevelUpdate,
    ToolsUpdate,
)
from pilothouse.agents.harness.hooks import HarnessHooks, Resources
from pilothouse.agents.harness.moving import Destination, Mover
from pilothouse.agents.harness.pending import PendingWrites
from pilothouse.agents.harness.phases import Phase, Phases
from pilothouse.agents.harness.queues import MemoryQueues, QueueName, Queues
from pilothouse.agents.harness.settings import Settings, ref_of
from pilothouse.agents.harness.turns import Ground, Turns
from pilothouse.agents.inputs import PromptInput, prompts_of
from pilothouse.agents.journal import Journal
from pilothouse.agents.listeners import Listener, Listeners
from pilothouse.agents.loop import run_loop
from pilothouse.agents.messages import AssistantMessage, ImageContent, Message
from pilothouse.agents.model_call import ABORTED
from pilothouse.agents.repair import missing_results
from pilothouse.agents.resume import find_position, outcome_unknown
from pilothouse.agents.run import Run
from pilothouse.agents.session import (
    ActiveToolsChangeBody,
    Body,
    ModelChangeBody,
    Navigation,
    SessionTree,
    ThinkingLevelChangeBody,
)
from pilothouse.agents.turns import Turn
from pilothouse.models.provider import ModelProvider, ThinkingLevel
from pilothouse.records.sessions import Entry
from pilothouse.tools.tool import Tool

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Cleared:
    """What waited in the queues when an abort came."""

    steer: Sequence[Message]
    follow_up: Sequence[Message]


class AgentHarness:
    """Does one thing at a time: what needs it idle raises AgentError `busy` else."""

    def __init__(self, tree: SessionTree, config: HarnessConfig, queues: Queues | None = None) -> None:
        """Takes over what the session says. Raises AgentError `invalid_argument` for a model or a tool that is not
        there."""
        self.hooks = HarnessHooks()
        self.tree = tree
        self._settings = Settings(config)
        self._settings.restore(tree.branch())
        self._config = config
        self._queues = queues or MemoryQueues()
        self._pending = PendingWrites(tree)
        self._phases = Phases()
        self._listeners = Listeners[HarnessEvent]()
        self._compactor = Compactor(tree, config, self._settings, self.hooks)
        self._mover = Mover(tree, config, self._settings, self.hooks)
        self._ground = Ground(
            tree,
            config,
            self._settings,
            self.hooks,
            self._queues,
            self._pending,
            self._compactor,
            drained=self._queue_update,
            compacted=self._compacted,
            activate=self._add_tools,
        )
        self._signal = Signal()
        self._stop: Callable[[], object] | None = None
        self._accepting = False
        self._answer: AssistantMessage | None = None

    @property
    def phase(self) -> Phase:
        return self._phases.now

    @property
    def settings(self) -> Settings:
        """What the next turn is made with; the setters of the harness change it."""
        return self._settings

    def subscribe(self, listener: Listener[HarnessEvent]) -> Callable[[], None]:
        """Returns what ends the subscription. What a listener hears of is in the session already."""
        return self._listeners.subscribe(listener)

    async def wait_for_idle(self) -> None:
        await self._phases.wait_for_idle()

    async def prompt(self, said: PromptInput, images: Sequence[ImageContent] = ()) -> AssistantMessage:
        """The last answer of the run, failed or not."""
        with self._phases.enter("turn"):
            self._answer = None
            return await self._play(prompts_of(said, images), None)

    async def continue_(self) -> AssistantMessage:
        """Goes on where the session stands: what is recorded there is not done again. Raises AgentError
        `invalid_state` where there is nothing to go on with, or the outcome of a call is not known."""
        with self._phases.enter("turn"):
            position = await find_position(self.tree.store, self.tree)
            if not position.messages:
                raise AgentError("invalid_state", "the session has no message to go on from")
            if position.unknown:
                raise AgentError("invalid_state", outcome_unknown(position.unknown).message)
            self._answer = position.turn.message if position.turn else None
            return await self._play((), position.turn)

    async def steer(self, said: PromptInput, images: Sequence[ImageContent] = ()) -> None:
        """Queues it for the next request of the run. Raises AgentError `invalid_state` where no run takes it."""
        await self._enqueue("steer", prompts_of(said, images))

    async def follow_up(self, said: PromptInput, images: Sequence[ImageContent] = ()) -> None:
        """Queues it for the time when the run would end. Raises AgentError `invalid_state` where no run takes it."""
        await self._enqueue("followUp", prompts_of(said, images))

    async def next_turn(self, said: PromptInput, images: Sequence[ImageContent] = ()) -> None:
        """Queues it to go before the next prompt."""
        await self._enqueue("nextTurn", prompts_of(said, images))

    async def abort(self) -> Cleared:
        """Aborts what the harness does and waits until it is idle. What waited to steer or to follow is returned."""
        cleared = Cleared(await self._queues.clear("steer"), await self._queues.clear("followUp"))
        if self._stop:
            self._stop()
        try:
            await self._queue_update()
        finally:
            await self.wait_for_idle()
        await self._tell(Aborted(cleared.steer, cleared.follow_up))
        return cleared

    async def compact(self, instructions: str = "") -> Entry:
        """Raises AgentError `compaction`; then nothing was written."""
        with self._phases.enter("compaction"):
            entry, from_hook = await self._abortable(self._compactor.run(instructions), "compaction")
            await self._compacted(entry, from_hook)
            return entry

    async def navigate(self, to: Destination) -> Navigation | None:
        """None where a hook cancelled it or it was aborted; then, and where it raises, the leaf has not moved."""
        with self._phases.enter("branch_summary"):
            before = self.tree.leaf
            try:
                moved = await self._abortable(self._mover.go(to), "branch_summary")
            except AgentError:
                if self._signal.aborted:
                    return None
                raise
            if moved and self.tree.leaf != before:
                self._settings.restore(self.tree.branch())
                summary = moved.summary.id if moved.summary else None
                await self._tell(SessionTreeMoved(before, moved.leaf, summary))
            return moved

    async def append(self, body: Body) -> None:
        """Writes an entry; while the harness is busy, after the messages of the turn."""
        if not self._phases.idle:
            self._pending.put(body)
            return
        await self._pending.flush()
        await self.tree.add(body)

    async def set_model(self, model: ModelProvider) -> None:
        """As all setters: kept in the session, and used from the next turn on."""
        ref = ref_of(model)
        await self.append(ModelChangeBody(provider=ref.provider, model_id=ref.model_id))
        self._settings.model = model
        await self._tell(ModelUpdate(ref))

    async def set_thinking_level(self, level: ThinkingLevel) -> None:
        await self.append(ThinkingLevelChangeBody(thinking_level=level))
        self._settings.thinking_level = level
        await self._tell(ThinkingLevelUpdate(level))

    async def set_tools(self, tools: Sequence[Tool], active: Sequence[str] | None = None) -> None:
        """The tools there are, and which of them the model sees: those that it saw, or these. Raises AgentError
        `invalid_argument` for a name that no tool has, or two."""
        self._settings.checked([tool.name for tool in tools], tools)
        wanted = self._settings.active if active is None else active
        names = None if wanted is None else self._settings.checked(wanted, tools)
        await self._activate(names, tools)

    async def set_active_tools(self, names: Sequence[str]) -> None:
        """Raises AgentError `invalid_argument` for a name that no tool has, or that stands there twice."""
        await self._activate(self._settings.checked(names), self._settings.tools)

    async def set_resources(self, resources: Resources) -> None:
        """Resources are not kept in the session."""
        self._settings.resources = resources
        await self._tell(ResourcesUpdate(resources))

    async def _activate(self, names: tuple[str, ...] | None, tools: Sequence[Tool]) -> None:
        if names is not None and names != self._settings.active:
            await self.append(ActiveToolsChangeBody(active_tool_names=names))
        self._settings.show(tuple(tools), names)
        await self._tell(ToolsUpdate([tool.name for tool in tools], names))

    async def _add_tools(self, names: Sequence[str]) -> None:
        """Shows the model the tools that a result adds, those that there are."""
        active, tools = self._settings.active, self._settings.tools
        there = {tool.name for tool in tools}
        if active is not None and (new := [name for name in dict.fromkeys(names) if name in there - set(active)]):
            await self._activate((*active, *new), tools)

    async def _play(self, said: Sequence[Message], resume: Turn | None) -> AssistantMessage:
        recorder = Journal(self.tree.store, self.tree, self._config.step, self._queues)
        run = Run(self._settings.model, recorder, self._hear)
        turns = Turns(self._ground)

        async def loop(emit: Emit) -> object:
            prompts = await turns.start(said) if said else ()
            context = await turns.context()
            left = missing_results(context.messages) if said else ()
            return await run_loop(context, turns.config(recorder), emit, prompts=[*left, *prompts], resume=resume)

        self._signal, self._stop, self._accepting = run.signal, run.abort, True
        try:
            await run.play(loop)
            await self._tell(Settled(len(await self._queues.waiting("nextTurn"))))
            await self._pending.flush()
        finally:
            self._accepting, self._stop, self._settings.system_prompt = False, None, None
            await self._queues.give_back()
        if self._answer is None:
            raise AgentError("invalid_state", "the run ended without an answer")
        return self._answer

    async def _hear(self, event: AgentEvent) -> None:
        """The messages of the loop are in the session by now. What waited to be written follows them."""
        if isinstance(event, AgentEnd):
            self._accepting = False
            answers = [message for message in event.messages if isinstance(message, AssistantMessage)]
            self._answer = answers[-1] if answers else self._answer
            await self._pending.flush()
        try:
            await self._tell(event)
        finally:
            written = isinstance(event, TurnEnd) and await self._pending.flush()
        if isinstance(event, TurnEnd):
            await self._tell(SavePoint(written))

    async def _enqueue(self, queue: QueueName, messages: Sequence[Message]) -> None:
        if queue != "nextTurn" and not self._accepting:
            raise AgentError("invalid_state", "no run takes this message; give it as a prompt, or for the next turn")
        for message in messages:
            await self._queues.put(queue, message)
        await self._queue_update()

    async def _queue_update(self) -> None:
        queues = self._queues
        waiting = [await queues.waiting(name) for name in ("steer", "followUp", "nextTurn")]
        await self._tell(QueueUpdate(*waiting))

    async def _compacted(self, entry: Entry, from_hook: bool) -> None:
        await self._tell(SessionCompact(entry.id, from_hook))

    async def _abortable(self, work: Coroutine[Any, Any, T], code: Literal["compaction", "branch_summary"]) -> T:
        """What the work gives. Raises AgentError where it was aborted."""
        task, before = asyncio.create_task(work), cancellations()
        self._signal = signal = Signal()

        def stop() -> None:
            signal.aborted = True
            task.cancel()

        self._stop = stop
        try:
            return await task
        except asyncio.CancelledError:
            if cancellations() > before or not signal.aborted:
                raise
            raise AgentError(code, ABORTED) from None
        finally:
            self._stop = None

    async def _tell(self, event: HarnessEvent) -> None:
        await self._listeners.tell(event, self._signal)
