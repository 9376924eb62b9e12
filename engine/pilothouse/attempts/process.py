"""What the process of a Pod's `agent` container does, from its environment to its exit status."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeAlias

from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.attempts.agent import AgentAttempt, Surroundings, failure_of
from pilothouse.attempts.assignment import Assignment, AssignmentRefused
from pilothouse.attempts.log import Log
from pilothouse.attempts.pod import TERMINATED
from pilothouse.attempts.settings import CannotStart, Files, Settings
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import NotFound, StoreUnavailable, StoreUnusable, Superseded
from pilothouse.store.patient import Outages, patient
from pilothouse.store.ports import AttemptStore
from pilothouse.store.remote import open_remote_store
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import SandboxLost
from pilothouse.tools.sandbox.hardening import harden
from pilothouse.tools.sandbox.pod import pod_sandbox
from pilothouse.tools.sandboxed import Sandboxes

STOP_LIMIT = 20.0
"""Seconds after SIGTERM within which the turn must have been closed; then the process ends as it is."""

OpenStore: TypeAlias = Callable[[Settings, Files], AbstractAsyncContextManager[AttemptStore]]


def remote(settings: Settings, files: Files) -> AbstractAsyncContextManager[AttemptStore]:
    """The attempt's store behind the gateway."""
    return open_remote_store(settings.store_url, files.token, settings.store_ca)


def carry_out(environment: Mapping[str, str], files: Files | None = None, open_store: OpenStore = remote) -> int:
    """Carries out the attempt that the environment names. Returns the exit status."""
    harden()
    try:
        settings = Settings.read(environment)
        return asyncio.run(AgentProcess(settings, files or Files(), open_store).run())
    except (CannotStart, StoreUnusable) as error:
        sys.stderr.write(f"agent: {error}\n")
        return 1


class AgentProcess:
    """Carries out one attempt, unless it is asked to stop before."""

    def __init__(self, settings: Settings, files: Files, open_store: OpenStore) -> None:
        self._settings = settings
        self._files = files
        self._open_store = open_store
        self._log = Log(str(settings.step), settings.number)
        self._stopping = False

    async def run(self) -> int:
        """The exit status."""
        work = asyncio.create_task(self._to_the_end())
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop, work)
        try:
            await work
        except (asyncio.CancelledError, StoreUnavailable):
            if not self._stopping:
                raise
            return TERMINATED
        return 0

    def _stop(self, work: "asyncio.Task[None]") -> None:
        if not self._stopping:
            self._stopping = True
            self._log.tell("asked to stop")
            limit = threading.Timer(STOP_LIMIT, os._exit, (TERMINATED,))
            limit.daemon = True
            limit.start()
            work.cancel()

    async def _to_the_end(self) -> None:
        outages = Outages(self._log.tell)
        async with AsyncExitStack() as stack:
            try:
                store = await outages.outlast(lambda: self._open(stack))
                await self._carry_out(patient(store, outages))
            except Superseded:
                self._log.tell("another attempt has taken the place of this one, or it has been ended")

    async def _open(self, stack: AsyncExitStack) -> AttemptStore:
        try:
            return await stack.enter_async_context(self._open_store(self._settings, self._files))
        except ValueError as error:
            raise CannotStart(f"PILOTHOUSE_STORE_URL or PILOTHOUSE_STORE_CA_PEM is wrong: {error}") from None

    async def _carry_out(self, store: AttemptStore) -> None:
        assignment = await self._assignment(store)
        failure = await failure_of(self._work(store, assignment))
        if failure is not None:
            self._log.tell(f"failed with {failure.code}")
            await store.finish(AttemptState.FAILED, failure=failure)

    async def _assignment(self, store: AttemptStore) -> Assignment:
        """Raises CannotStart once that is recorded."""
        try:
            return Assignment.decode(await store.get_blob(self._settings.work))
        except (NotFound, AssignmentRefused) as error:
            reason = f"the work of the attempt, PILOTHOUSE_WORK, cannot be read: {error}"
            await store.finish(AttemptState.FAILED, failure=Failure(FailureCode.ENV, reason))
            raise CannotStart(reason) from None

    async def _work(self, store: AttemptStore, assignment: Assignment) -> None:
        secret = secrets(self._files, AgentSpec.model_validate(assignment.work.spec))
        surroundings = Surroundings(self._sandbox(), secret, self._log.emit, self._log.tell)
        attempt = AgentAttempt(store, self._settings.step, self._settings.number)
        await attempt.carry_out(assignment, surroundings)

    def _sandbox(self) -> AbstractAsyncContextManager[Sandboxes]:
        return pod_sandbox(self._files.door, self._log.tell) if self._settings.sandbox else _no_sandbox()


def secrets(files: Files, spec: AgentSpec) -> Callable[[KeyRef], str]:
    """Reads a Secret's key where the Pod has it: the model's in its own place, and never for anything else."""
    model_key = spec.model.api_key_from and spec.model.api_key_from.secret_key_ref

    def read(ref: KeyRef) -> str:
        return (files.model_key if ref == model_key else files.secrets / ref.name / ref.key).read_text()

    return read


class _NoSandbox:
    async def current(self) -> Sandbox:
        raise SandboxLost("this Pod was made without one, as its agent had no tool that needs it")


@asynccontextmanager
async def _no_sandbox() -> AsyncIterator[Sandboxes]:
    yield _NoSandbox()
