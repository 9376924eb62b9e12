"""One attempt of an agent step, from its assignment to its outcome in the store, wherever it is carried out."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

from pilothouse.agents.definition import Definition, ToolGround, make_task
from pilothouse.agents.delegation.team import Ready, Team
from pilothouse.agents.events import Emit, ignore
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.attempts.assignment import Assignment
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.queues import QueueName
from pilothouse.records.runs import StepId
from pilothouse.records.sessions import named_session, session_of
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import QueueNotEmpty, SessionBusy, StoreUnavailable, Superseded
from pilothouse.store.keeping import keep_own
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.sandbox.errors import SandboxError
from pilothouse.tools.sandboxed import Sandboxes

BUSY_PAUSE = 1.0
"""Seconds between two looks whether a session is free."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an attempt finds where it runs: `sandbox` for its tools, begun within the step's time; `secret`, the value
    of a Secret's key, asked for whenever it is used; where its events go, and what people should know."""

    sandbox: AbstractAsyncContextManager[Sandboxes]
    secret: Callable[[KeyRef], str]
    emit: Emit = ignore
    tell: Callable[[str], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Means:
    """An agent's task, and what and with whom it is done."""

    task: AgentTask
    ready: Ready
    team: Team


@dataclass(frozen=True, slots=True)
class AgentAttempt:
    """The attempt number `number` of the step, as its own process sees it. `store` waits through outages."""

    store: AttemptStore
    step: StepId
    number: int

    async def carry_out(self, assignment: Assignment, surroundings: Surroundings) -> None:
        """Runs the agent, or goes on where its session stands, and commits the outcome.

        Raises Failed for an outcome that is left to be recorded, and anything else that `failure_of` knows.
        """
        limit = assignment.work.timeout
        try:
            async with asyncio.timeout(limit) as clock, self.opened(assignment, surroundings) as means:
                while not await self._finish(means, await self._run(means, surroundings.emit)):
                    pass
        except TimeoutError:
            if not clock.expired():
                raise
            raise Failed(FailureCode.TMO, f"the agent reached the step's timeout of {limit:g} seconds") from None

    @asynccontextmanager
    async def opened(self, assignment: Assignment, surroundings: Surroundings) -> AsyncIterator[Means]:
        """What the work is done with, for as long as the block lasts. Waits for a session that another attempt has."""
        agent, members = _definitions(assignment)
        task = self._task(agent, assignment)
        redactor = Redactor()
        secret = _learning(surroundings.secret, redactor)
        await self._hold(task, surroundings.tell)
        async with surroundings.sandbox as sandboxes:
            ground = ToolGround(sandboxes, self.store.put_blob, redactor, secret, surroundings.tell)
            team = Team(self.store, ground, members)
            async with team.opened(agent, task) as ready:
                yield Means(task, ready, team)

    async def _hold(self, task: AgentTask, tell: Callable[[str], None]) -> None:
        """A session of its own is free."""
        told = False
        while task.session_name is not None:
            try:
                await self.store.open_session(task.session, task.session_name)
                return
            except SessionBusy as busy:
                if not told:
                    tell(f"waiting: {busy}")
                told = True
                await asyncio.sleep(BUSY_PAUSE)

    async def _run(self, means: Means, emit: Emit) -> AgentResult:
        ready = means.ready
        return await run_agent(means.task, self.store, ready.model, ready.tools, ready.counted(emit))

    def _task(self, agent: Definition, assignment: Assignment) -> AgentTask:
        work = assignment.work
        return make_task(
            agent.spec,
            session=self._session(work.session),
            session_name=work.session,
            step=self.step,
            attempt=self.number,
            message=work.message,
            arguments=work.arguments,
            instructions=agent.instructions,
        )

    def _session(self, name: str | None) -> UUID:
        run = self.store.ref.run
        return session_of(run, self.step) if name is None else named_session(run.tenant, name)

    async def _finish(self, means: Means, result: AgentResult) -> bool:
        """Whether the outcome is recorded; not where a message came at the last moment, which goes first."""
        state = AttemptState.FAILED if result.failure else AttemptState.SUCCEEDED
        try:
            outputs = await keep_own(self.store, result.outputs)
        except ValueRefused as error:
            raise Failed(FailureCode.VAL, f"the agent's answer cannot be stored: {error}") from None
        try:
            await self.store.finish(state, outputs, result.failure)
        except QueueNotEmpty:
            await self._hush(means)
            return False
        return True

    async def _hush(self, means: Means) -> None:
        """Nobody hears what is said to an agent that was asked and has answered. Raises Failed where the message is for
        one that an earlier process asked."""
        for session in means.team.asked:
            await self.store.clear(session, [QueueName.STEER, QueueName.FOLLOW_UP])
        own = await self.store.queued(means.task.session)
        if not means.team.asked and all(item.queue is QueueName.NEXT_TURN for item in own):
            raise Failed(FailureCode.ENV, "a message waits for an agent of this attempt that has answered already")


async def failure_of(work: Awaitable[None]) -> Failure | None:
    """Waits for the work, and says how it failed; None if it has committed its own outcome.

    Raises Superseded where another attempt has taken its place, and StoreUnavailable where the store was away as the
    work was asked to end.
    """
    try:
        await work
    except (Superseded, StoreUnavailable):
        raise
    except Failed as error:
        return error.failure
    except SandboxError as error:
        return Failure(FailureCode.ENV, f"the sandbox cannot be used: {error}")
    except OSError as error:
        return Failure(FailureCode.ENV, f"the agent cannot be run here: {error.strerror or error}")
    except Exception as error:  # a defect of ours must end the attempt, not whoever waits for it
        return Failure(FailureCode.UNK, f"the agent's process failed: {type(error).__name__}: {error}")
    return None


def _learning(secret: Callable[[KeyRef], str], redactor: Redactor) -> Callable[[KeyRef], str]:
    """Whatever value is asked for, now or later, no tool's output shows it from then on."""

    def ask(key: KeyRef) -> str:
        value = secret(key)
        redactor.learn(value)
        return value

    return ask


def _definitions(assignment: Assignment) -> tuple[Definition, Mapping[str, Definition]]:
    """The agent, and by name those that can be asked."""
    work = assignment.work
    members = {
        name: Definition(name, AgentSpec.model_validate(spec), assignment.prompts[name])
        for name, spec in work.agents.items()
    }
    return Definition(work.agent, AgentSpec.model_validate(work.spec), assignment.instructions), members
