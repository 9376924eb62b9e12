"""The latency of a light step, against one insert and commit on the same server.

A chain of transforms, each reading the one before, is driven by the local runner. A step's latency is the time from
the commit of the step before to its own, by the database's clock.
"""

import asyncio
from itertools import pairwise

from bench.ground import PlainInserts, run_of, server
from bench.measure import Ratio, Report, Series, Target, print_report
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.records.events import Event, EventType
from pilothouse.records.runs import Run
from pilothouse.records.values import Inline
from pilothouse.store.ports import RunStore
from pilothouse.store.postgres import open_store
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.local.runner import Runner

STEPS = 50
RUNS = 6


async def measure() -> Report:
    latencies: list[float] = []
    async with server() as dsn, open_store(dsn) as store, Evaluator() as evaluator, PlainInserts.into(dsn) as plain:
        runner = Runner(store, evaluator, lambda closure, wake: {}, print)
        for _ in range(RUNS):
            latencies += await _latencies(store, runner)
            for _ in range(STEPS):
                await plain.one()
    ours = Series("one light step of a chain", latencies)
    insert = Series("one insert and commit", plain.seconds)
    return Report(
        f"Light steps: {RUNS} runs of {STEPS} chained transforms",
        (insert, ours),
        (
            Ratio("one light step, p95", "one insert and commit, p50", ours.p95, insert.p50, Target(60)),
            Ratio("one light step, p95", "one insert and commit, p95", ours.p95, insert.p95),
        ),
    )


async def _latencies(store: RunStore, runner: Runner) -> list[float]:
    run = await runner.drive((await store.create_run(run_of(_chain()))).ref)
    _check(run)
    ends = [event.at for event in await store.events(run.ref) if _ends_step(event)]
    return [(end - before).total_seconds() for before, end in pairwise(ends)]


def _chain() -> WorkflowSpec:
    steps = [{"name": "s0", "transform": {"value": 0}}]
    for n in range(1, STEPS):
        steps.append({"name": f"s{n}", "transform": {"value": f"${{{{ steps.s{n - 1}.outputs.value + 1 }}}}"}})
    last = {"name": "last", "value": f"${{{{ steps.s{STEPS - 1}.outputs.value }}}}"}
    return WorkflowSpec.model_validate({"steps": steps, "outputs": [last]})


def _ends_step(event: Event) -> bool:
    return event.type is EventType.STEP_SUCCEEDED


def _check(run: Run) -> None:
    assert run.outputs == {"last": Inline(STEPS - 1)}, f"the run went wrong: {run.failure}"


if __name__ == "__main__":
    print_report(asyncio.run(measure()))
