"""A conversation: the attempt of an agent step that takes its prompts from a person."""

import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pilothouse.agents.abort import Signal
from pilothouse.agents.bounds import Bounds
from pilothouse.agents.errors import AgentError
from pilothouse.agents.events import MessageEnd
from pilothouse.agents.harness import AgentHarness
from pilothouse.agents.harness.events import HarnessEvent
from pilothouse.agents.hooks import Block, EndedTurn, GatedCall
from pilothouse.agents.messages import Message
from pilothouse.agents.resume import find_position, outcome_unknown
from pilothouse.agents.session import SessionTree
from pilothouse.agents.task import harness_of
from pilothouse.attempts.agent import AgentAttempt, Means, Surroundings
from pilothouse.attempts.assignment import Assignment
from pilothouse.cli.chat.commands import Commands
from pilothouse.cli.chat.keyboard import Keyboard
from pilothouse.cli.chat.screen import Screen
from pilothouse.records.queues import QueueName
from pilothouse.records.states import AttemptState
from pilothouse.store.keeping import keep_own


@dataclass(frozen=True, slots=True)
class Conversation:
    """Where the person types and reads."""

    keyboard: Keyboard
    screen: Screen

    async def carry_out(self, attempt: AgentAttempt, assignment: Assignment, surroundings: Surroundings) -> None:
        """Until the person has had enough. What was said last and got no answer, since a process died, gets one."""
        store = attempt.store
        async with attempt.opened(assignment, surroundings) as means:
            task = means.task
            tree = await SessionTree.open(store, task.session, task.attempt, task.session_name, task.step)
            await self._converse(_Budgeted(tree, means), tree)
        outputs = await keep_own(store, {"session": str(tree.id)})
        await store.clear(tree.id, [QueueName.STEER, QueueName.FOLLOW_UP])
        await store.finish(AttemptState.SUCCEEDED, outputs)

    async def _converse(self, agent: "_Budgeted", tree: SessionTree) -> None:
        harness = agent.harness
        harness.subscribe(self.screen)
        commands = Commands(harness, self.screen)
        with self._interrupts(harness):
            await self._go_on(agent, tree)
            self.screen.ask()
            async for line in self.keyboard:
                if line.startswith("/"):
                    if not await commands.carry_out(line):
                        return
                elif line.strip():
                    await self._answered(agent, line)
                self.screen.ask()

    async def _go_on(self, agent: "_Budgeted", tree: SessionTree) -> None:
        position = await find_position(tree.store, tree)
        if position.unknown:
            self.screen.tell(f"! {outcome_unknown(position.unknown).message}")
        elif position.messages and not (position.turn and position.turn.closed):
            await self._answered(agent, None)

    async def _answered(self, agent: "_Budgeted", line: str | None) -> None:
        try:
            await agent.answer(line)
        except AgentError as error:
            self.screen.tell(f"! {error}")
        if agent.exceeded:
            self.screen.tell(f"! {agent.exceeded}")

    @contextmanager
    def _interrupts(self, harness: AgentHarness) -> Iterator[None]:
        """Ctrl-C aborts what the agent does; where it does nothing, it ends the conversation."""
        loop, aborting = asyncio.get_running_loop(), set[asyncio.Task[object]]()

        def interrupt() -> None:
            if harness.phase == "idle":
                self.keyboard.end()
                return
            task = asyncio.ensure_future(harness.abort())
            aborting.add(task)
            task.add_done_callback(aborting.discard)

        loop.add_signal_handler(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            loop.remove_signal_handler(signal.SIGINT)


class _Budgeted:
    """The agent, with the budget of its spec for each answer."""

    def __init__(self, tree: SessionTree, means: Means) -> None:
        task = replace(means.task, output_schema=None)  # people read what it says
        self.exceeded = ""
        self._limits = task.limits
        self._bounds = Bounds(task.limits)
        self.harness = harness_of(task, tree, means.ready.model, means.ready.tools, self._stops, _none)
        self.harness.hooks.tool_call.add(self._check)
        self.harness.subscribe(self._observe)

    async def answer(self, said: str | None) -> None:
        """The answer to a prompt; None: to what stands in the session."""
        self._bounds, self.exceeded = Bounds(self._limits), ""
        await (self.harness.continue_() if said is None else self.harness.prompt(said))

    async def _check(self, call: GatedCall) -> Block | None:
        return await self._bounds.before_tool_call(call)

    async def _stops(self, turn: EndedTurn) -> bool:
        failure = self._bounds.exceeded() if turn.tool_results else None
        self.exceeded = str(failure) if failure else ""
        return failure is not None

    async def _observe(self, event: HarnessEvent, signal: Signal) -> None:
        if isinstance(event, MessageEnd):
            self._bounds.observe(event.message)


async def _none() -> Sequence[Message]:
    return ()
