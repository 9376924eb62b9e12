"""Agent steps as tasks of this process, each with a sandbox of its own beside it."""

import asyncio
import shutil
from collections.abc import Callable
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
from pilothouse.store.errors import StoreUnavailable, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.local.commands import Sources
from pilothouse.workflows.values import keep_all
from pilothouse.workflows.work import AgentWork, ValueSource, Work


class LocalAgents:
    """Carries out agent attempts. A task ends with this process, and the next runner restarts it: whatever it
    did is in its session, so it goes on from there. `wake` is called whenever one may have ended."""

    def __init__(self, root: Path, store: RunStore, sources: Sources, wake: Callable[[], None]) -> None:
        self._root = root
        self._store = store
        self._sources = sources
        self._wake = wake
        self._tasks: dict[UUID, asyncio.Task[Ending | None]] = {}
        self._workspaces: dict[UUID, Path] = {}
        self._refused: dict[UUID, Ending] = {}

    async def running(self, attempt: Attempt) -> bool:
        return attempt.ref.attempt in self._tasks

    async def start(self, attempt: Attempt, work: Work) -> None:
        if not isinstance(work, AgentWork):
            raise TypeError(f"step {attempt.step} is not an agent's")
        task = asyncio.create_task(self._run(attempt, work))
        task.add_done_callback(lambda _: self._wake())
        self._tasks[attempt.ref.attempt] = task
        self._workspaces[attempt.ref.attempt] = self._workspace(attempt)

    async def ending(self, attempt: Attempt) -> Ending | None:
        id_ = attempt.ref.attempt
        if id_ in self._refused:
            return self._refused[id_]
        task = self._tasks.get(id_)
        if task is None:
            return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, "the runner was ended"))
        return task.result() if task.done() else None

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        """Cancels the task and waits for it: the turn is closed first, so that every call has its result."""
        task = self._tasks.pop(attempt.ref.attempt, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])
        state = AttemptState.CANCELLED if failure is None else AttemptState.FAILED
        self._refused[attempt.ref.attempt] = Ending(state, failure=failure)
        self._wake()

    async def forget(self, attempt: Attempt) -> None:
        """Lets go of the task, and of the workspace unless a restart goes on in it."""
        self._tasks.pop(attempt.ref.attempt, None)
        self._refused.pop(attempt.ref.attempt, None)
        workspace = self._workspaces.pop(attempt.ref.attempt, self._workspace(attempt))
        if workspace not in self._workspaces.values():
            await asyncio.to_thread(shutil.rmtree, workspace, ignore_errors=True)

    async def close(self) -> None:
        """Cancels every task and waits for all of them."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, attempt: Attempt, work: AgentWork) -> Ending | None:
        """None once the attempt has committed its own end, or another attempt has taken its place."""
        store = self._store.attempt_store(attempt.ref)
        try:
            await self._finish(store, attempt, await self._work(store, attempt, work))
        except Superseded:
            return None
        except StoreUnavailable as error:
            return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, f"the store went away: {error}"))
        except Failed as error:
            return Ending(AttemptState.FAILED, failure=error.failure)
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
        async with local_sandbox(workspace) as sandbox:
            return await run_agent(task, store, self._provider(spec), make_tools(spec, sandbox))

    async def _finish(self, store: AttemptStore, attempt: Attempt, result: AgentResult) -> None:
        state = AttemptState.FAILED if result.failure else AttemptState.SUCCEEDED
        try:
            outputs = await keep_all(self._store, attempt.ref.run.tenant, result.outputs)
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
