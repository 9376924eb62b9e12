"""Recording one step transition, against one insert and commit on the same server.

The transition is the one that the engine writes when a step starts: the step changes its state, an attempt opens
and an event tells of it, in one transaction.
"""

import asyncio

from bench.ground import PlainInserts, new_run, server
from bench.measure import Ratio, Report, Series, Target, print_report, timed
from pilothouse.records.runs import NewStep, StepId
from pilothouse.store.postgres import open_store
from pilothouse.workflows.moves import start

TRANSITIONS = 1_000
WARM_UP = 20


async def measure() -> Report:
    transitions: list[float] = []
    new = new_run([NewStep(StepId(f"step-{n}"), "runCommand") for n in range(WARM_UP + TRANSITIONS)])
    async with (
        server() as dsn,
        open_store(dsn) as store,
        store.lead("bench") as leader,
        PlainInserts.into(dsn) as plain,
    ):
        run = await store.create_run(new)
        for step in (await store.snapshot(run.ref)).steps.values():
            transitions.append(await timed(store.commit(run.ref, leader.epoch, start(step, 1, 60.0))))
            await plain.one()
    ours = Series("one step transition", transitions[WARM_UP:])
    insert = Series("one insert and commit", plain.seconds[WARM_UP:])
    return Report(
        "Recording a step transition",
        (insert, ours),
        (Ratio("one step transition, p50", "one insert and commit, p50", ours.p50, insert.p50, Target(6)),),
    )


if __name__ == "__main__":
    print_report(asyncio.run(measure()))
