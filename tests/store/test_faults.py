"""Fault points around each write, by which other tests end a process at any recorded transition."""

import asyncio
import signal
import sys
from uuid import uuid4

import pytest

from pilothouse.records.runs import AttemptRef
from pilothouse.records.sessions import ToolOutcome
from pilothouse.records.states import AttemptState, Shutdown
from pilothouse.store.faults import KillAt, Point, Record, faulty
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.transitions import Transition
from tests.store.samples import STARTED, message, new_run, opening, tool_call


async def test_every_write_is_a_point_in_order_and_no_read_is(memory: MemoryRunStore) -> None:
    record = Record()
    store = faulty(memory, record)
    run = (await store.create_run(new_run())).ref
    opened = opening()
    await store.commit(run, 1, Transition(openings=[opened], events=[STARTED]))
    await store.commit(run, 1, Transition())
    await store.snapshot(run)
    attempt, session, turn = store.attempt_store(AttemptRef(run, opened.attempt, 1)), uuid4(), message()
    assert attempt.ref == AttemptRef(run, opened.attempt, 1)
    await attempt.open_session(session)
    await attempt.append(session, None, [turn])
    await attempt.intend(session, tool_call(turn.id))
    await attempt.tool_calls(session, turn.id)
    await attempt.record(session, ToolOutcome(turn.id, 0))
    await attempt.put_blob(b"")
    await attempt.finish(AttemptState.SUCCEEDED)
    await store.put_blob(run.tenant, b"")
    await store.request_shutdown(run, Shutdown.STOP)
    assert [f"{point.number} {point.name}" for point in record.points] == [
        "1 create_run",
        "2 commit:StepStarted",
        "3 commit",
        "4 open_session",
        "5 append",
        "6 intend",
        "7 record",
        "8 put_blob",
        "9 finish",
        "10 put_blob",
        "11 request_shutdown",
    ]


class Fail(Record):
    """Raises at one moment of every point."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self.moment = moment

    def before(self, point: Point) -> None:
        if self.moment == "before":
            raise RuntimeError

    def after(self, point: Point) -> None:
        if self.moment == "after":
            raise RuntimeError


@pytest.mark.parametrize(("moment", "runs"), [("before", 0), ("after", 1)])
async def test_a_fault_before_a_write_prevents_it_and_one_after_does_not(
    memory: MemoryRunStore, moment: str, runs: int
) -> None:
    with pytest.raises(RuntimeError):
        await faulty(memory, Fail(moment)).create_run(new_run())
    assert len(await memory.runs()) == runs


_DOOMED = """
import asyncio, sys
from pilothouse.store.faults import KillAt, faulty
from pilothouse.store.memory import MemoryRunStore
from tests.store.samples import new_run

async def main():
    store = faulty(MemoryRunStore(), KillAt(2, sys.argv[1]))
    await store.create_run(new_run())
    print("one", flush=True)
    await store.create_run(new_run())
    print("two", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_ends_at_its_point(moment: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _DOOMED, moment, stdout=asyncio.subprocess.PIPE
    )
    told, _ = await process.communicate()
    assert (told, process.returncode) == (b"one\n", -signal.SIGKILL)


def test_no_other_point_ends_it() -> None:
    kill = KillAt(2, "before")
    kill.after(Point(2, "append"))
    kill.before(Point(1, "append"))
