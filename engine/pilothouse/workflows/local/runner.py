"""The runner: drives one run of this machine to its end, whatever happened to the runner before it."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from pilothouse.records.runs import Run, RunRef
from pilothouse.store.errors import Conflict, Deposed, StoreError, StoreUnavailable
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.planner import make_plan
from pilothouse.workflows.reconcile import Pass, Reconciler

SWEEP = 30.0
"""Seconds after which a run is looked at although nothing told of a change."""

OUTAGE_PAUSE = 1.0
"""Seconds between two tries while the store is away."""

RACE_PAUSE = 0.01
"""Seconds after which a pass is made again whose write came too late."""


Executors = Callable[[Closure, Callable[[], None]], Mapping[str, Executor]]
"""Makes the executors of a run, by step kind, from its closure and from what they call when something ended."""


class Runner:
    """Drives runs of this machine. `tell` hears of outages, in a sentence."""

    def __init__(
        self, store: RunStore, evaluator: Evaluator, executors: Executors, tell: Callable[[str], None]
    ) -> None:
        self._store = store
        self._evaluator = evaluator
        self._executors = executors
        self._tell = tell

    async def drive(self, ref: RunRef) -> Run:
        """Takes the lead of the run and drives it until it has ended. Raises Conflict where another process
        drives it already. Cancelling pauses the run: commands go on by themselves, agents at the next drive."""
        async with self._store.lead(f"run/{ref.run}") as leadership:
            wake = asyncio.Event()
            closure = Closure.from_json((await self._store.snapshot(ref)).run.closure)
            plan = await make_plan(closure.workflow, self._evaluator)
            executors = self._executors(closure, wake.set)
            reconciler = Reconciler(self._store, executors, self._evaluator, closure, plan, ref, leadership.epoch)
            listener = asyncio.create_task(self._listen(ref, wake))
            try:
                ended = await self._until_final(reconciler, wake)
                await self._clear(reconciler, ref)
                return ended
            finally:
                listener.cancel()
                each = {id(executor): executor for executor in executors.values()}
                await asyncio.wait([listener])
                await asyncio.gather(*(executor.close() for executor in each.values()))

    async def _until_final(self, reconciler: Reconciler, wake: asyncio.Event) -> Run:
        while True:
            wake.clear()
            done = await self._pass(reconciler)
            if done.run.state.final:
                return done.run
            await _wait(wake, done.wake_in)

    async def _pass(self, reconciler: Reconciler) -> Pass:
        """One pass; an outage of the store is waited for, and a lost race is run again."""
        away = False
        while True:
            try:
                done = await reconciler.run_pass()
            except StoreUnavailable as error:
                if not away:
                    self._tell(f"the store is away, the run waits: {error}")
                away = True
                await asyncio.sleep(OUTAGE_PAUSE)
            except Deposed:
                raise
            except Conflict:
                # An attempt ended itself, or a shutdown came, between the read and the write.
                await asyncio.sleep(RACE_PAUSE)
            else:
                if away:
                    self._tell("the store is back, the run goes on")
                return done

    async def _clear(self, reconciler: Reconciler, ref: RunRef) -> None:
        """Removes what a runner that was killed left of attempts whose ends it had recorded."""
        with suppress(StoreUnavailable):
            for attempt in await self._store.attempts(ref):
                await reconciler.executor(attempt.step).forget(attempt)

    async def _listen(self, ref: RunRef, wake: asyncio.Event) -> None:
        """Only hints come this way: whatever goes wrong with them, the sweep goes on."""
        while True:
            try:
                async with self._store.changes(ref) as changes:
                    async for _ in changes:
                        wake.set()
            except StoreError:
                await asyncio.sleep(OUTAGE_PAUSE)


async def _wait(wake: asyncio.Event, wake_in: float | None) -> None:
    limit = SWEEP if wake_in is None else min(wake_in, SWEEP)
    with suppress(TimeoutError):
        async with asyncio.timeout(limit):
            await wake.wait()
