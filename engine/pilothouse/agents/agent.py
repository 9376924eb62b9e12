"""An agent in memory: its state, its queues and its listeners around the loop. Nothing of it outlives the process."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

from uuid6 import uuid7

from pilothouse.agents.abort import Signal
from pilothouse.agents.context import Context
from pilothouse.agents.errors import AgentError
from pilothouse.agents.events import AgentEvent, Emit, MessageEnd
from pilothouse.agents.hooks import EndedTurn, Hooks, NextTurn
from pilothouse.agents.inputs import PromptInput, prompts_of
from pilothouse.agents.journal import CallResult, PreparedCall
from pilothouse.agents.listeners import Listener, Listeners
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import AssistantMessage, ImageContent, Message
from pilothouse.agents.queue import MessageQueue
from pilothouse.agents.run import Run
from pilothouse.agents.state import AgentState
from pilothouse.agents.turns import Turn, failed
from pilothouse.models.provider import ModelOptions, ModelProvider
from pilothouse.tools.registry import ToolRegistry


class Agent:
    """Runs one conversation. `hooks` are the loop's; its steering and its follow-ups are this agent's queues."""

    def __init__(
        self, model: ModelProvider, *, hooks: Hooks | None = None, options: ModelOptions | None = None
    ) -> None:
        self.state = AgentState(model)
        self.steering = MessageQueue()
        self.follow_ups = MessageQueue()
        self._hooks = hooks or Hooks()
        self._options = options or ModelOptions()
        self._listeners = Listeners[AgentEvent]()
        self._run: Run | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def subscribe(self, listener: Listener[AgentEvent]) -> Callable[[], None]:
        """The listener hears every event, after the state was reduced by it. Returns what ends that."""
        return self._listeners.subscribe(listener)

    @property
    def signal(self) -> Signal | None:
        """That of the run, None where there is none."""
        return self._run.signal if self._run else None

    async def prompt(self, said: PromptInput, images: Sequence[ImageContent] = ()) -> None:
        """Ends with the run; how it went is in the state. Raises AgentError `busy`."""
        self._check_idle()
        await self._play(prompts_of(said, images))

    async def continue_(self) -> None:
        """Goes on without a prompt: with what is queued where the conversation ends with an answer, else by asking
        the model. Raises AgentError `busy`, and `invalid_state` where there is nothing to go on with."""
        self._check_idle()
        last = self.state.messages[-1] if self.state.messages else None
        if isinstance(last, AssistantMessage) and not failed(last):
            steering = self.steering.take()
            queued = steering or self.follow_ups.take()
            if not queued:
                raise AgentError("invalid_state", "the conversation ends with an answer, and nothing is queued")
            await self._play(queued, steered=bool(steering))
        elif last is None:
            raise AgentError("invalid_state", "there is no message to go on from")
        else:
            await self._play(())

    def steer(self, message: Message) -> None:
        """Queues a message for the next request of the run, or of the next run."""
        self.steering.put(message)

    def follow_up(self, message: Message) -> None:
        """Queues a message for the time when the agent would stop."""
        self.follow_ups.put(message)

    def abort(self) -> None:
        """Aborts the run, if there is one; what is queued stays."""
        if self._run:
            self._run.abort()

    async def wait_for_idle(self) -> None:
        """Until the last listener has heard of the run's end."""
        await self._idle.wait()

    def reset(self) -> None:
        """Forgets the conversation and what is queued. Raises AgentError `busy`."""
        self._check_idle()
        self.state.messages = []
        self.state.finish()
        self.state.error_message = None
        self.steering.clear()
        self.follow_ups.clear()

    def _check_idle(self) -> None:
        if self._run:
            raise AgentError("busy", "the agent is at work; steer it, queue a follow-up, or wait until it is idle")

    async def _play(self, prompts: Sequence[Message], *, steered: bool = False) -> None:
        recorder = _Forgetful()
        self._run = Run(self.state.model, recorder, self._hear)
        self._idle.clear()
        self.state.begin()
        try:
            settings = _Settings(self.state)
            hooks = self._queued(settings, steered=steered)
            options = replace(self._options, thinking=self.state.thinking_level)
            config = LoopConfig(self.state.model, recorder, hooks, options)
            context = Context(self.state.system_prompt, tuple(self.state.messages), settings.registry)

            async def loop(emit: Emit) -> object:
                return await run_loop(context, config, emit, prompts=prompts)

            await self._run.play(loop)
        finally:
            self._run = None
            self.steering.give_back()
            self.follow_ups.give_back()
            self.state.finish()
            self._idle.set()

    def _queued(self, settings: "_Settings", *, steered: bool) -> Hooks:
        """The hooks with this agent's queues. Where the run begins with steering, the first poll finds none, so that
        one at a time stays one."""
        begun = not steered

        async def steer() -> Sequence[Message]:
            nonlocal begun
            if not begun:
                begun = True
                return ()
            return self.steering.take()

        async def follow_up() -> Sequence[Message]:
            return self.follow_ups.take()

        async def prepare(turn: EndedTurn) -> NextTurn | None:
            changed = settings.changed(turn.context)
            own = await self._hooks.prepare_next_turn(turn)
            if own is None:
                return changed
            return NextTurn(
                own.context or changed.context,
                own.model or changed.model,
                own.thinking_level or changed.thinking_level,
            )

        return replace(
            self._hooks, get_steering_messages=steer, get_follow_up_messages=follow_up, prepare_next_turn=prepare
        )

    async def _hear(self, event: AgentEvent) -> None:
        self.state.reduce(event)
        if isinstance(event, MessageEnd):
            self.steering.delivered(event.message)
            self.follow_ups.delivered(event.message)
        if self._run:
            await self._listeners.tell(event, self._run.signal)


class _Settings:
    """What a run uses of the state, and what of it was changed since."""

    def __init__(self, state: AgentState) -> None:
        self._state = state
        self.registry = ToolRegistry(state.tools)
        self._used = self._now()

    def changed(self, context: Context) -> NextTurn:
        before, self._used = self._used, self._now()
        system, model, level, tools = (new if new != old else None for new, old in zip(self._used, before, strict=True))
        if tools is not None:
            self.registry = ToolRegistry(self._state.tools)
        there = Context(
            context.system if system is None else self._state.system_prompt,
            context.messages,
            context.tools if tools is None else self.registry,
        )
        return NextTurn(
            None if system is None and tools is None else there,
            None if model is None else self._state.model,
            None if level is None else self._state.thinking_level,
        )

    def _now(self) -> tuple[object, ...]:
        state = self._state
        return state.system_prompt, state.model, state.thinking_level, state.tools


class _Forgetful:
    """A Recorder that keeps nothing: the state has the messages."""

    async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
        return uuid7()

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        pass

    async def record(self, result: CallResult) -> None:
        pass
