"""This machine, as the executor of commands sees it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.store.memory import MemoryRunStore
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.local.commands import LocalCommands
from pilothouse.workflows.local.place import Place
from pilothouse.workflows.work import CommandWork, ValueSource


class Values:
    """Sources with one Secret."""

    def value(self, source: ValueSource) -> str:
        if (source.name, source.key) != ("s", "k"):
            raise Failed(FailureCode.ENV, f"there is no {source.kind} `{source.name}`")
        return "hush"


@dataclass
class Machine:
    """A folder of places, and the runners that come and go on it."""

    folder: Path
    runners: list[LocalCommands] = field(default_factory=list)
    wakes: int = 0
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def runner(self) -> LocalCommands:
        """A new runner, as after a crash of the one before."""
        self.runners.append(LocalCommands(self.folder / "attempts", MemoryRunStore(), Values(), self._wake))
        return self.runners[-1]

    def _wake(self) -> None:
        self.wakes += 1
        self.woken.set()

    def work(self, script: str, **more: object) -> CommandWork:
        return CommandWork(["sh", "-c", f"cd {self.folder}; {script}"], **more)  # type: ignore[arg-type]

    def slow(self) -> CommandWork:
        """Runs until the file `go` is there."""
        return self.work("echo x >> effects; until test -e go; do sleep 0.02; done; echo over")

    @property
    def effects(self) -> str:
        path = self.folder / "effects"
        return path.read_text() if path.exists() else ""

    def place(self, attempt: Attempt) -> Place:
        return Place.of(self.folder / "attempts", attempt)

    async def begun(self, attempt: Attempt) -> None:
        while not (self.place(attempt).read().started and self.effects):  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.01)

    async def ended(self, runner: LocalCommands, attempt: Attempt) -> Ending:
        while (ending := await runner.ending(attempt)) is None:
            await self.woken.wait()
            self.woken.clear()
        return ending


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    for runner in machine.runners:
        await runner.close()
    for log in (tmp_path / "attempts").glob("*/log"):
        place = Place(log.parent)
        if place.locked():
            with suppress(ProcessLookupError):
                os.kill(place.read().pid, signal.SIGKILL)
