"""A trial: one scripted session, whose processes are killed one after the other until one comes to the end."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pilothouse.records.states import AttemptState
from pilothouse.store.ports import RunStore
from tests.agents.desk import Desk, a_desk
from tests.agents.kills.evidence import Evidence, gather
from tests.agents.kills.ledger import Ledger
from tests.agents.kills.plans import Plan
from tests.agents.kills.process import JOB, KILLED, Job, Kill


@dataclass(frozen=True)
class Trial:
    """The n-th of the kills is for the n-th process; the one after them is left alone."""

    plan: Plan
    kills: Sequence[Kill] = ()


@dataclass(frozen=True)
class Traces:
    """What a trial left: the evidence after each death, and at the end; and the writes that its processes began."""

    trial: Trial
    deaths: Sequence[Evidence]
    end: Evidence
    points: Sequence[str]


@dataclass(frozen=True)
class Ground:
    """Where trials take place: a store, a folder, and the processes that fork agents."""

    store: RunStore
    dsn: str
    folder: Path
    forkers: asyncio.Queue[Process]
    numbers: Iterator[int] = field(default_factory=count)

    async def play(self, trial: Trial) -> Traces:
        file, deaths = self.folder / str(next(self.numbers)), list[Evidence]()
        async with a_desk(self.store) as desk:
            for kill in (*trial.kills, None):
                killed = await self._process(desk, trial.plan, file, kill)
                found = await gather(self.store, self.dsn, desk, Ledger(file))
                if killed:
                    deaths.append(found)
                if not killed or found.attempt.state is not AttemptState.OPEN:
                    break
        return Traces(trial, deaths, found, Ledger(file).facts("point"))

    async def _process(self, desk: Desk, plan: Plan, file: Path, kill: Kill | None) -> bool:
        """Carries out the next attempt; returns whether its process was killed."""
        ref = (await desk.attempt()).ref
        return await self._fork(Job(self.dsn, ref, desk.session, plan, file, kill)) == KILLED

    async def _fork(self, job: Job) -> int:
        forker = await self.forkers.get()
        assert forker.stdin is not None
        assert forker.stdout is not None
        forker.stdin.write(JOB.dump_json(job) + b"\n")
        status = int(await forker.stdout.readline())
        self.forkers.put_nowait(forker)
        return status


@asynccontextmanager
async def a_ground(store: RunStore, dsn: str, folder: Path, at_once: int) -> AsyncIterator[Ground]:
    started = [await _forker() for _ in range(at_once)]
    forkers: asyncio.Queue[Process] = asyncio.Queue()
    for forker in started:
        forkers.put_nowait(forker)
    try:
        yield Ground(store, dsn, folder, forkers)
    finally:
        for forker in started:
            await forker.communicate(b"")  # the end of its input is its end


async def _forker() -> Process:
    program = (sys.executable, "-m", "tests.agents.kills.process")
    return await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE)
