"""The reconciler: reads a run, asks the brain, and carries out what it says, one transition at a time."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pilothouse.api.workflow import Step as StepSpec
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.runs import Attempt, AttemptRef, Run, RunRef, Snapshot, StepId
from pilothouse.records.states import AttemptState, RunState, StepState
from pilothouse.records.values import Outputs, Stored, ValueRefused
from pilothouse.store.keeping import keep_all
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import AttemptOpening, Transition
from pilothouse.workflows import moves
from pilothouse.workflows.actions import Action, Begin, Close, Restart, Retry, Settle, Stop, Wake
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.decide import decide
from pilothouse.workflows.executor import Ending, Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.plan import Controls, Plan
from pilothouse.workflows.scope import Scope
from pilothouse.workflows.steps import KINDS
from pilothouse.workflows.steps.kind import Beginning, Done, require_bool
from pilothouse.workflows.work import Work

GRACE = 30.0
"""Seconds beyond its timeout after which an attempt that should have ended itself is ended from outside."""

SHARE = 1.0
"""Seconds after which a pass leaves what is still due to the next one: others have their turn then, and what was asked
for meanwhile is heard."""

LEAST = 0.001
"""Seconds left to an attempt that is begun again after its time is over: it ends at once, by its timeout."""


@dataclass(frozen=True, slots=True)
class Pass:
    """What one pass of the reconciler came to. `wake_in` is in seconds; 0: more is due already; None: only a change can
    matter."""

    snapshot: Snapshot
    wake_in: float | None

    @property
    def run(self) -> Run:
        return self.snapshot.run


class Reconciler:
    """Drives one run under one leadership. Whatever it does may be cut off anywhere and done again."""

    def __init__(
        self,
        store: RunStore,
        executors: Mapping[str, Executor],
        evaluator: Evaluator,
        closure: Closure,
        plan: Plan,
        ref: RunRef,
        epoch: int,
        grace: Callable[[StepSpec], float] = lambda _: GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`grace`: seconds beyond its timeout after which an attempt of the step is ended from outside. `clock`: tells
        in seconds when a pass has had its share."""
        self._store = store
        self._executors = executors
        self._evaluator = evaluator
        self._closure = closure
        self._specs = {StepId(spec.name): spec for spec in closure.workflow.steps or ()}
        self._plan = plan
        self._ref = ref
        self._epoch = epoch
        self._grace = grace
        self._clock = clock

    def executor(self, step: StepId) -> Executor:
        """Who carries out attempts of the step."""
        return self._executors[self._plan.steps[step].kind]

    async def run_pass(self, controls: Controls | None = None) -> Pass:
        """Decides and acts until nothing is due or its share of time is over, but for one action at least and for the
        run's end, under the definition's controls where none are given. Raises Deposed where another leader has taken
        the run."""
        plan = self._plan.under(controls) if controls else self._plan
        end = float("inf")
        while True:
            snapshot = _under(controls, await self._store.snapshot(self._ref))
            endings = await self._endings(snapshot)
            seen = _with_endings(snapshot, endings)
            actions = decide(plan, seen)
            due = _first_due(actions)
            if not due or (self._clock() >= end and not _closes(due)):
                await self._stop_and_start(actions, seen)
                return Pass(seen, 0.0 if due else _wake_in(actions, seen.now))
            end = min(end, self._clock() + SHARE)
            await self._act_until(end, due, seen, endings)

    async def _act_until(
        self, end: float, due: Sequence[Action], snapshot: Snapshot, endings: Mapping[StepId, Ending]
    ) -> None:
        """Acts one by one; what is left when the time has come is due again."""
        for action in due:
            await self._act(action, snapshot, endings)
            if self._clock() >= end:
                return

    async def _endings(self, snapshot: Snapshot) -> dict[StepId, Ending]:
        endings: dict[StepId, Ending] = {}
        for id_, attempt in snapshot.attempts.items():
            if not attempt.state.final:
                ending = await self.executor(id_).ending(attempt)
                if ending is not None:
                    endings[id_] = ending
        return endings

    async def _stop_and_start(self, actions: Sequence[Action], snapshot: Snapshot) -> None:
        """Ends the attempts that are to end, and starts those that a crash kept from being started."""
        stops = {action.step: action for action in actions if isinstance(action, Stop)}
        attempts = {id_: attempt for id_, attempt in snapshot.attempts.items() if not attempt.state.final}
        await asyncio.gather(*(self.executor(id_).stop(attempts[id_], stop.failure) for id_, stop in stops.items()))
        for id_, attempt in attempts.items():
            if id_ not in stops and not await self.executor(id_).running(attempt):
                await self._start_again(attempt, snapshot)

    async def _start_again(self, attempt: Attempt, snapshot: Snapshot) -> None:
        try:
            work = await self._work(snapshot, attempt.step)
        except Failed as error:
            await self.executor(attempt.step).stop(attempt, error.failure)
            return
        await self._start(attempt, self._shortened(work, attempt, snapshot.now))

    async def _start(self, attempt: Attempt, work: Work) -> None:
        executor = self.executor(attempt.step)
        try:
            await executor.start(attempt, work)
        except Failed as error:
            await executor.stop(attempt, error.failure)

    async def _act(self, action: Action, snapshot: Snapshot, endings: Mapping[StepId, Ending]) -> None:
        match action:
            case Close():
                await self._close(action, snapshot)
            case Begin():
                await self._begin(action, snapshot)
            case Settle() | Retry():
                await self._end_attempt(action, snapshot, endings.get(action.step))
            case Restart():
                await self._restart(action, snapshot, endings.get(action.step))
            case Stop() | Wake():
                return

    async def _end_attempt(self, action: Settle | Retry, snapshot: Snapshot, ending: Ending | None) -> None:
        step, attempt = snapshot.steps[action.step], snapshot.attempts.get(action.step)
        if isinstance(action, Settle):
            await self._commit(moves.settle(action, step, attempt, ending))
        elif attempt is not None:
            await self._commit(moves.retry(action, step, attempt, ending))
        if attempt is not None:
            await self.executor(attempt.step).forget(attempt)

    async def _begin(self, action: Begin, snapshot: Snapshot) -> None:
        step = snapshot.steps[action.step]
        try:
            if action.number == 1 and not await self._guard(snapshot, step.id):
                await self._commit(moves.skip(step, "`when` was false"))
                return
            beginning = await self._beginning(snapshot, step.id)
            if isinstance(beginning, Done):
                await self._commit(moves.finish_light(step, await self._keep(beginning.outputs)))
                return
        except Failed as error:
            await self._commit(moves.fail_to_begin(step, error.failure))
            return
        limit = self._limit(step.id, beginning)
        await self._open(moves.start(step, action.number, limit), snapshot, beginning)

    async def _restart(self, action: Restart, snapshot: Snapshot, ending: Ending | None) -> None:
        step, attempt = snapshot.steps[action.step], snapshot.attempts[action.step]
        try:
            work = self._shortened(await self._work(snapshot, step.id), attempt, snapshot.now)
        except Failed as error:
            await self._end_attempt(Settle(step.id, StepState.FAILED, error.failure), snapshot, ending)
            return
        limit = self._limit(step.id, work)
        await self._open(moves.restart(action, step, attempt, ending, limit), snapshot, work)
        await self.executor(step.id).forget(attempt)

    async def _open(self, move: Transition, snapshot: Snapshot, work: Work) -> None:
        await self._commit(move)
        (opening,) = move.openings
        await self._start(_opened(opening, snapshot), work)

    def _limit(self, step: StepId, work: Work) -> float | None:
        return None if work.timeout is None else work.timeout + self._grace(self._specs[step])

    def _shortened(self, work: Work, attempt: Attempt, now: datetime) -> Work:
        """The work with the time that is left to it: the deadline stands, however often the attempt is begun."""
        if attempt.deadline is None:
            return work
        left = (attempt.deadline - now).total_seconds() - self._grace(self._specs[attempt.step])
        return replace(work, timeout=max(left, LEAST))

    async def _guard(self, snapshot: Snapshot, id_: StepId) -> bool:
        when = self._specs[id_].when
        return when is None or require_bool(await self._scope(snapshot).evaluate(when), when)

    async def _beginning(self, snapshot: Snapshot, id_: StepId) -> Beginning:
        spec: StepSpec = self._specs[id_]
        key, action = spec.action
        return await KINDS[key].begin(spec, action, self._scope(snapshot))

    async def _work(self, snapshot: Snapshot, id_: StepId) -> Work:
        """The work of a step that has an attempt, evaluated again: what it reads has not changed since."""
        beginning = await self._beginning(snapshot, id_)
        if isinstance(beginning, Done):
            raise TypeError(f"step {id_} has an attempt and is light")
        return beginning

    async def _close(self, action: Close, snapshot: Snapshot) -> None:
        state, failure = action.state, action.failure
        outputs: Outputs = {}
        if state is RunState.SUCCEEDED:
            try:
                outputs = await self._outputs(snapshot)
            except Failed as error:
                state, failure = RunState.FAILED, error.failure
        await self._commit(moves.close(state, outputs, failure))

    async def _outputs(self, snapshot: Snapshot) -> Outputs:
        scope = self._scope(snapshot)
        outputs: dict[str, Stored] = {}
        for output in self._closure.workflow.outputs:
            try:
                outputs |= await self._keep({output.name: await scope.render_stored(output.value)})
            except Failed as error:
                message = f"output `{output.name}`: {error.failure.message}"
                raise Failed(error.failure.code, message, error.failure.reason) from None
        return outputs

    async def _keep(self, values: Mapping[str, Any]) -> Outputs:
        try:
            return await keep_all(self._store, self._ref.tenant, values)
        except ValueRefused as error:
            raise Failed(FailureCode.VAL, f"an output cannot be stored: {error}") from None

    def _scope(self, snapshot: Snapshot) -> Scope:
        return Scope(snapshot, self._closure.agents, self._evaluator, self._store)

    async def _commit(self, move: Transition) -> None:
        await self._store.commit(self._ref, self._epoch, move)


def _with_endings(snapshot: Snapshot, endings: Mapping[StepId, Ending]) -> Snapshot:
    """The snapshot as it will be once the endings are recorded."""
    ended = {
        id_: replace(
            snapshot.attempts[id_],
            state=ending.state,
            outputs=ending.outputs,
            failure=ending.failure,
            log=ending.log,
        )
        for id_, ending in endings.items()
    }
    return replace(snapshot, attempts={**snapshot.attempts, **ended})


def _first_due(actions: Sequence[Action]) -> list[Action]:
    """What changes rows. What settles goes first and alone: it may forbid what would begin."""
    settling: list[Action] = [action for action in actions if isinstance(action, Settle | Retry | Restart)]
    return settling or [action for action in actions if isinstance(action, Begin | Close)]


def _closes(due: Sequence[Action]) -> bool:
    return isinstance(due[0], Close)


def _wake_in(actions: Sequence[Action], now: datetime) -> float | None:
    wakes = [action.at for action in actions if isinstance(action, Wake)]
    return max((min(wakes) - now).total_seconds(), 0.0) if wakes else None


def _under(controls: Controls | None, snapshot: Snapshot) -> Snapshot:
    """The snapshot with the run's deadline as the controls have it now."""
    if controls is None:
        return snapshot
    run = snapshot.run
    deadline = None if controls.deadline is None else run.created_at + timedelta(seconds=controls.deadline)
    return replace(snapshot, run=replace(run, deadline=deadline))


def _opened(opening: AttemptOpening, snapshot: Snapshot) -> Attempt:
    return Attempt(
        ref=AttemptRef(snapshot.run.ref, opening.attempt, opening.after + 1),
        step=opening.step,
        number=opening.number,
        restart=opening.restart,
        nonce=opening.nonce,
        state=AttemptState.OPEN,
        created_at=snapshot.now,
    )
