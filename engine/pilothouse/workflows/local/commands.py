"""Command steps as processes of this machine. They outlive the runner, and the next runner finds them."""

import asyncio
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol
from uuid import UUID

from pilothouse.processes import end_of
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.store.keeping import keep_all
from pilothouse.store.ports import Blobs
from pilothouse.workflows.commands.environment import defaults
from pilothouse.workflows.commands.frames import Exit
from pilothouse.workflows.commands.outcome import CommandLog, CommandOutcome, outcome
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.local.place import Place
from pilothouse.workflows.work import CommandWork, Text, ValueSource, Work

_NEVER_BEGAN = Exit(problem="the command's entry point ended before it began")


class Sources(Protocol):
    """Values of ConfigMaps and Secrets."""

    def value(self, source: ValueSource) -> str:
        """The value. Raises Failed(F-ENV) naming what is missing."""
        ...


class LocalCommands:
    """Carries out command attempts. `wake` is called whenever one may have ended."""

    def __init__(self, root: Path, blobs: Blobs, sources: Sources, wake: Callable[[], None]) -> None:
        self._root = root
        self._blobs = blobs
        self._sources = sources
        self._wake = wake
        self._watches: dict[UUID, asyncio.Task[None]] = {}

    async def running(self, attempt: Attempt) -> bool:
        place = self._place(attempt)
        if not place.begun() and not place.locked():
            return attempt.ref.attempt in self._watches
        self._watch(attempt, place, None)
        return True

    async def start(self, attempt: Attempt, work: Work) -> None:
        if not isinstance(work, CommandWork):
            raise TypeError(f"step {attempt.step} is not a command")
        if work.image is not None:
            raise Failed(
                FailureCode.ENV, f"image `{work.image}` runs on a cluster only; without one, our tools run here"
            )
        place = self._place(attempt)
        try:
            pid = await asyncio.to_thread(self._spawn, place, work)
        except OSError as error:
            raise Failed(FailureCode.ENV, f"the command cannot be started: {error.strerror or error}") from None
        self._watch(attempt, place, pid)

    async def ending(self, attempt: Attempt) -> Ending | None:
        place = self._place(attempt)
        if not place.over() and not (self._watched(attempt) and place.forbid(_NEVER_BEGAN)):
            return None
        log = await asyncio.to_thread(place.read)
        return await self._ending(attempt, place, _with_stop(_outcome(log), place.stop_failure()))

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        place = self._place(attempt)
        if await asyncio.to_thread(place.stop, failure):
            self._wake()
        else:
            self._watch(attempt, place, None)

    async def forget(self, attempt: Attempt) -> None:
        self._watches.pop(attempt.ref.attempt, None)
        await asyncio.to_thread(self._place(attempt).remove)

    async def close(self) -> None:
        for watch in self._watches.values():
            watch.cancel()
        await asyncio.gather(*self._watches.values(), return_exceptions=True)

    def _place(self, attempt: Attempt) -> Place:
        return Place.of(self._root, attempt)

    def _text(self, text: Text) -> str:
        return text if isinstance(text, str) else self._sources.value(text)

    def _spawn(self, place: Place, work: CommandWork) -> int:
        """Starts the entry point as a process that nothing here ends, as asyncio would when it lets go of it."""
        files = {name: self._text(text) for name, text in work.files.items()}
        env = {name: self._env(name, text) for name, text in work.env.items()}
        place.prepare(work.argv, files, work.timeout, work.confined)
        nowhere = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in (0, 1, 2)]
        argv = list(place.command)
        return os.posix_spawn(argv[0], argv, _environment(place, env), file_actions=nowhere, setsid=True)

    def _env(self, name: str, text: Text) -> str:
        value = self._text(text)
        if "\0" in value or not _encodable(value):
            raise Failed(FailureCode.INP, f"env `{name}` holds a NUL or a lone surrogate, which no environment can")
        return value

    def _watched(self, attempt: Attempt) -> bool:
        """Whether the entry point that was started here has ended."""
        watch = self._watches.get(attempt.ref.attempt)
        return watch is not None and watch.done()

    async def _ending(self, attempt: Attempt, place: Place, result: CommandOutcome) -> Ending:
        tenant = attempt.ref.run.tenant
        log = await self._blobs.put_blob(tenant, await asyncio.to_thread(place.data))
        try:
            outputs = await keep_all(self._blobs, tenant, result.outputs)
        except ValueRefused as error:
            failure = Failure(FailureCode.VAL, f"$PILOTHOUSE_OUTPUT cannot be stored: {error}")
            return Ending(AttemptState.FAILED, failure=failure, log=log)
        return Ending(result.state, outputs, result.failure, log)

    def _watch(self, attempt: Attempt, place: Place, child: int | None) -> None:
        known = self._watches.get(attempt.ref.attempt)
        if known is None or known.done():
            self._watches[attempt.ref.attempt] = asyncio.create_task(self._await_end(place, child))

    async def _await_end(self, place: Place, child: int | None) -> None:
        if child is not None:
            await _process_end(child)
            os.waitpid(child, os.WNOHANG)  # noqa: ASYNC222 - it has ended, and this does not wait
        while place.locked():  # another entry point than ours took the place
            await _process_end((await asyncio.to_thread(place.read)).pid)
        self._wake()


async def _process_end(pid: int) -> None:
    """Returns when the process has ended, or soon where its first frame does not tell its id yet."""
    try:
        await end_of(pid)
    except OSError:
        await asyncio.sleep(0.01)


def _encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def _outcome(log: CommandLog) -> CommandOutcome:
    if log.end is None:
        return CommandOutcome(AttemptState.LOST)
    if not log.started and not log.end.stopped:
        return CommandOutcome(AttemptState.NEVER_STARTED, failure=Failure(FailureCode.ENV, log.end.problem))
    return outcome(log)


def _with_stop(result: CommandOutcome, failure: Failure | None) -> CommandOutcome:
    if result.state is AttemptState.CANCELLED and failure is not None:
        return CommandOutcome(AttemptState.FAILED, result.outputs, failure)
    return result


def _environment(place: Place, own: Mapping[str, str]) -> dict[str, str]:
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, **defaults(str(place.work)), **own, "PILOTHOUSE_OUTPUT": str(place.output)}
