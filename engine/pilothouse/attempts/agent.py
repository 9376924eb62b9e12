"""One attempt of an agent step, from its assignment to its outcome in the store, wherever it is carried out."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

from pilothouse.agents.definition import ToolGround, make_provider, make_task, open_tools
from pilothouse.agents.events import Emit, ignore
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.attempts.assignment import Assignment
from pilothouse.models.provider import ModelProvider
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import StepId
from pilothouse.records.sessions import session_of
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreUnavailable, Superseded
from pilothouse.store.keeping import keep_own
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.redaction import Redactor
from pilothouse.tools.sandbox.errors import SandboxError
from pilothouse.tools.sandboxed import Sandboxes


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an attempt finds where it runs: `sandbox` for its tools, begun within the step's time; `secret`, the value
    of a Secret's key, asked for whenever it is used; where its events go, and what people should know."""

    sandbox: AbstractAsyncContextManager[Sandboxes]
    secret: Callable[[KeyRef], str]
    emit: Emit = ignore
    tell: Callable[[str], None] = lambda _: None


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
        spec = AgentSpec.model_validate(assignment.work.spec)
        task = self._task(spec, assignment)
        redactor = Redactor()
        secret = _learning(surroundings.secret, redactor)
        provider = _provider(spec, secret)
        limit = assignment.work.timeout
        try:
            async with asyncio.timeout(limit) as clock, surroundings.sandbox as sandboxes:
                ground = ToolGround(sandboxes, self.store.put_blob, redactor, secret, surroundings.tell)
                async with open_tools(spec, ground) as tools:
                    result = await run_agent(task, self.store, provider, tools, surroundings.emit)
        except TimeoutError:
            if not clock.expired():
                raise
            raise Failed(FailureCode.TMO, f"the agent reached the step's timeout of {limit:g} seconds") from None
        await self._finish(result)

    def _task(self, spec: AgentSpec, assignment: Assignment) -> AgentTask:
        work = assignment.work
        return make_task(
            spec,
            session=session_of(self.store.ref.run, self.step),
            step=self.step,
            attempt=self.number,
            message=work.message,
            arguments=work.arguments,
            instructions=assignment.instructions,
        )

    async def _finish(self, result: AgentResult) -> None:
        state = AttemptState.FAILED if result.failure else AttemptState.SUCCEEDED
        try:
            outputs = await keep_own(self.store, result.outputs)
        except ValueRefused as error:
            raise Failed(FailureCode.VAL, f"the agent's answer cannot be stored: {error}") from None
        await self.store.finish(state, outputs, result.failure)


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


def _provider(spec: AgentSpec, secret: Callable[[KeyRef], str]) -> ModelProvider:
    source = spec.model.api_key_from
    return make_provider(spec, None if source is None else partial(secret, source.secret_key_ref))
