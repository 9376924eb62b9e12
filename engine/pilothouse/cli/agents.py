"""Agent steps as tasks of this process, each with a sandbox of its own beside it."""

import asyncio
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid5

from pilothouse.agents.definition import make_provider, make_task, make_tools
from pilothouse.agents.task import AgentResult, run_agent
from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.models.provider import ModelProvider
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import StoreError, StoreUnavailable, Superseded
from pilothouse.store.keeping import keep_all
from pilothouse.store.patient import Outages, patient
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.local.commands import Sources
from pilothouse.workflows.work import AgentWork, ValueSource, Work

STOP_LIMIT = 30.0
"""Seconds that a task which is cancelled has to close its turn; what it writes later is refused."""


class LocalAgents:
    """Carries out agent attempts. A task ends with this process, and the next runner restarts it: whatever it
    did is in its session, so it goes on from there. `wake` is called whenever one may have ended;
    `tell` hears of outages, through which they wait."""

    def __init__(
        self, root: Path, store: RunStore, sources: Sources, wake: Callable[[], None], tell: Callable[[str], None]
    ) -> None:
        self._root = root
        self._store = store
        self._sources = sources
        self._wake = wake
        self._outages = Outages(tell)
        self._tell = tell
        self._tasks: dict[UUID, asyncio.Task[Ending | None]] = {}
        self._attempts: dict[UUID, Attempt] = {}
        self._stopped: dict[UUID, Ending] = {}

    async def running(self, attempt: Attempt) -> bool:
        return attempt.ref.attempt in self._tasks

    async def start(self, attempt: Attempt, work: Work) -> None:
        if not isinstance(work, AgentWork):
            raise TypeError(f"step {attempt.step} is not an agent's")
        if await self.running(attempt):
            return
        task = asyncio.create_task(self._run(attempt, work))
        task.add_done_callback(lambda _: self._wake())
        self._tasks[attempt.ref.attempt] = task
        self._attempts[attempt.ref.attempt] = attempt

    async def ending(self, attempt: Attempt) -> Ending | None:
        """An attempt that this executor did not start is lost: its task went with another process, and only
        a new fence keeps that one from writing."""
        id_ = attempt.ref.attempt
        if id_ in self._stopped:
            return self._stopped[id_]
        task = self._tasks.get(id_)
        if task is None or task.cancelled():
            return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, "the runner was ended"))
        return task.result() if task.done() else None

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        """Cancels the task and waits for it, though not for ever: the turn is closed first, so that every call
        has its result."""
        await self._cancel(self._tasks.pop(attempt.ref.attempt, None))
        state = AttemptState.CANCELLED if failure is None else AttemptState.FAILED
        self._stopped[attempt.ref.attempt] = Ending(state, failure=failure)
        self._wake()

    async def forget(self, attempt: Attempt) -> None:
        """Lets go of the task, and of the workspace unless a restart goes on in it."""
        self._tasks.pop(attempt.ref.attempt, None)
        self._stopped.pop(attempt.ref.attempt, None)
        self._attempts.pop(attempt.ref.attempt, None)
        workspace = self._workspace(attempt)
        if workspace not in map(self._workspace, self._attempts.values()):
            await asyncio.to_thread(shutil.rmtree, workspace, ignore_errors=True)

    async def close(self) -> None:
        """Cancels every task, and records that they were let go of: a pause uses up no restart."""
        await asyncio.gather(*(self._release(id_, task) for id_, task in list(self._tasks.items())))

    async def _release(self, id_: UUID, task: "asyncio.Task[Ending | None]") -> None:
        over = task.done()
        await self._cancel(task)
        if not over:
            with suppress(StoreError):
                await self._store.attempt_store(self._attempts[id_].ref).finish(AttemptState.RELEASED)

    async def _cancel(self, task: "asyncio.Task[Ending | None] | None") -> None:
        if task is not None:
            task.cancel()
            await asyncio.wait([task], timeout=STOP_LIMIT)

    async def _run(self, attempt: Attempt, work: AgentWork) -> Ending | None:
        """None once the attempt has committed its own end, or another attempt has taken its place."""
        store = patient(self._store.attempt_store(attempt.ref), self._outages)
        try:
            await self._finish(store, attempt, await self._work(store, attempt, work))
        except Superseded:
            return None
        except StoreUnavailable as error:  # a task that was asked to end does not wait for the store
            return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, f"the store was away: {error}"))
        except TimeoutError:
            text = f"the agent reached the step's timeout of {work.timeout:g} seconds"
            return Ending(AttemptState.FAILED, failure=Failure(FailureCode.TMO, text))
        except Failed as error:
            return Ending(AttemptState.FAILED, failure=error.failure)
        except OSError as error:
            text = f"the agent cannot be run here: {error.strerror or error}"
            return Ending(AttemptState.FAILED, failure=Failure(FailureCode.ENV, text))
        except Exception as error:  # a defect of ours must end the attempt, not the runner
            text = f"the agent's process failed: {type(error).__name__}: {error}"
            return Ending(AttemptState.FAILED, failure=Failure(FailureCode.UNK, text))
        return None

    async def _work(self, store: AttemptStore, attempt: Attempt, work: AgentWork) -> AgentResult:
        spec = AgentSpec.model_validate(work.spec)
        task = make_task(
            spec,
            session=uuid5(attempt.ref.run.run, f"session {attempt.step}"),
            step=attempt.step,
            attempt=attempt.number,
            message=work.message,
            arguments=work.arguments,
            instructions=self._instructions(spec),
        )
        workspace = self._workspace(attempt)
        workspace.mkdir(parents=True, exist_ok=True)
        async with asyncio.timeout(work.timeout), local_sandbox(workspace) as sandbox:
            if not sandbox.sealed:
                self._tell(f"step {attempt.step}: its tools can reach the network: {sandbox.not_sealed_reason}")
            return await run_agent(task, store, self._provider(spec), make_tools(spec, sandbox))

    async def _finish(self, store: AttemptStore, attempt: Attempt, result: AgentResult) -> None:
        state = AttemptState.FAILED if result.failure else AttemptState.SUCCEEDED
        tenant = attempt.ref.run.tenant
        try:
            outputs = await self._outages.outlast(lambda: keep_all(self._store, tenant, result.outputs))
        except ValueRefused as error:
            raise Failed(FailureCode.VAL, f"the agent's answer cannot be stored: {error}") from None
        await store.finish(state, outputs, result.failure)

    def _instructions(self, spec: AgentSpec) -> str:
        prompt = spec.prompt
        if prompt is None:
            return ""
        if prompt.system_from is None:
            return prompt.system or ""
        return self._value("ConfigMap", prompt.system_from.config_map_key_ref)

    def _provider(self, spec: AgentSpec) -> ModelProvider:
        source = spec.model.api_key_from
        key = None if source is None else lambda: self._value("Secret", source.secret_key_ref)
        return make_provider(spec, key)

    def _value(self, kind: str, ref: KeyRef) -> str:
        return self._sources.value(ValueSource(kind, ref.name, ref.key))

    def _workspace(self, attempt: Attempt) -> Path:
        return self._root / f"{attempt.ref.run.run}-{attempt.step.path}-{attempt.number}"
