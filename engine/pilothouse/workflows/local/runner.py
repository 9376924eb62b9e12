"""The runner: drives one run of this machine to its end, whatever happened to the runner before it."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from pilothouse.records.failures import Failure
from pilothouse.records.runs import Attempt, Run, RunRef
from pilothouse.store.errors import Conflict, Deposed, StoreUnavailable
from pilothouse.store.ports import RunStore
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Ending, Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.plan import Plan
from pilothouse.workflows.planner import Planner
from pilothouse.workflows.reconcile import Reconciler, Turn
from pilothouse.workflows.work import Work

SWEEP = 30.0
"""Seconds after which a run is looked at although nothing told of a change."""

OUTAGE_PAUSE = 1.0
"""Seconds between two tries while the store is away."""


class ByKind:
    """The executor of a whole run: each attempt goes to the executor of its step's kind."""

    def __init__(self, plan: Plan, executors: Mapping[str, Executor]) -> None:
        self._plan = plan
        self._executors = executors

    async def running(self, attempt: Attempt) -> bool:
        return await self._of(attempt).running(attempt)

    async def start(self, attempt: Attempt, work: Work) -> None:
        await self._of(attempt).start(attempt, work)

    async def ending(self, attempt: Attempt) -> Ending | None:
        return await self._of(attempt).ending(attempt)

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        await self._of(attempt).stop(attempt, failure)

    async def forget(self, attempt: Attempt) -> None:
        await self._of(attempt).forget(attempt)

    async def close(self) -> None:
        for executor in self._executors.values():
            await executor.close()

    def _of(self, attempt: Attempt) -> Executor:
        return self._executors[self._plan.steps[attempt.step].kind]


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
            plan = await self._plan(closure, ref)
            executor = ByKind(plan, self._executors(closure, wake.set))
            reconciler = Reconciler(self._store, executor, self._evaluator, closure, plan, ref, leadership.epoch)
            listener = asyncio.create_task(self._listen(ref, wake))
            try:
                ended = await self._until_final(reconciler, wake)
                await self._clear(executor, ref)
                return ended
            finally:
                listener.cancel()
                await asyncio.gather(listener, executor.close(), return_exceptions=True)

    async def _plan(self, closure: Closure, ref: RunRef) -> Plan:
        planner = Planner(closure.workflow, self._evaluator)
        plan = await planner.plan()
        if plan is None:
            raise ValueError(f"run {ref.run} holds a definition that has no plan: {planner.problems[0]}")
        return plan

    async def _until_final(self, reconciler: Reconciler, wake: asyncio.Event) -> Run:
        while True:
            wake.clear()
            turn = await self._turn(reconciler)
            if turn.run.state.final:
                return turn.run
            await _wait(wake, turn.wake_in)

    async def _turn(self, reconciler: Reconciler) -> Turn:
        """One turn; an outage of the store is waited for, and a lost race is run again."""
        away = False
        while True:
            try:
                turn = await reconciler.turn()
            except StoreUnavailable as error:
                if not away:
                    self._tell(f"the store is away, the run waits: {error}")
                away = True
                await asyncio.sleep(OUTAGE_PAUSE)
            except Deposed:
                raise
            except Conflict:
                continue  # an attempt ended itself, or a shutdown came, between the read and the write
            else:
                if away:
                    self._tell("the store is back, the run goes on")
                return turn

    async def _clear(self, executor: Executor, ref: RunRef) -> None:
        """Removes what a runner that was killed left of attempts whose ends it had recorded."""
        with suppress(StoreUnavailable):
            for attempt in await self._store.attempts(ref):
                await executor.forget(attempt)

    async def _listen(self, ref: RunRef, wake: asyncio.Event) -> None:
        while True:
            with suppress(StoreUnavailable):
                async with self._store.changes(ref) as changes:
                    async for _ in changes:
                        wake.set()
            await asyncio.sleep(OUTAGE_PAUSE)


async def _wait(wake: asyncio.Event, wake_in: float | None) -> None:
    limit = SWEEP if wake_in is None else min(wake_in, SWEEP)
    with suppress(TimeoutError):
        await asyncio.wait_for(wake.wait(), limit)
