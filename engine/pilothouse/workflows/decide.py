"""The brain: from the plan, the recorded rows and the clock to what should happen next.

A pure function. The local runner and the operator both call it and differ only in how an action is
carried out, so whatever is true of a run here is true of it everywhere.
"""

from collections.abc import Iterator, Set
from dataclasses import dataclass

from pilothouse.records.failures import OUTCOME_UNKNOWN, Failure, FailureCode
from pilothouse.records.runs import Attempt, Snapshot, Step, StepId
from pilothouse.records.states import AttemptState, RunState, Shutdown, StepState
from pilothouse.records.values import JSON, Inline
from pilothouse.workflows.actions import Action, Begin, Close, Restart, Retry, Settle, Stop, Wake
from pilothouse.workflows.backoff import retry_delay
from pilothouse.workflows.plan import FailurePolicy, OnLoss, Plan, PlannedStep

MAX_NEVER_STARTED = 3
"""Restarts of an attempt whose process provably never began."""

MAX_CONTINUED = 10
"""Restarts of an attempt that goes on from its own rows."""

_UNMET = frozenset({StepState.FAILED, StepState.ERROR, StepState.CANCELLED, StepState.OMITTED})
"""States of a need after which the step that needs it is omitted. A skipped need does not count."""

_BROKEN = frozenset({StepState.FAILED, StepState.ERROR})


def decide(plan: Plan, snapshot: Snapshot) -> list[Action]:
    """The actions that are due now, in the order of the plan. An empty list: wait for a change."""
    if snapshot.run.state.final:
        return []
    actions = list(_Decision.of(plan, snapshot).actions())
    wakes = [action for action in actions if isinstance(action, Wake)]
    due: list[Action] = [action for action in actions if not isinstance(action, Wake)]
    return due + ([min(wakes, key=lambda wake: wake.at)] if wakes else [])


@dataclass(frozen=True, slots=True)
class _Decision:
    plan: Plan
    snapshot: Snapshot
    unhandled: tuple[Step, ...]
    expired: bool

    @classmethod
    def of(cls, plan: Plan, snapshot: Snapshot) -> "_Decision":
        broken = (snapshot.steps[id_] for id_ in plan.steps if id_ not in plan.handled)
        unhandled = tuple(step for step in broken if step.state in _BROKEN)
        deadline = snapshot.run.deadline
        return cls(plan, snapshot, unhandled, deadline is not None and deadline <= snapshot.now)

    def actions(self) -> Iterator[Action]:
        if all(step.state.final for step in self.snapshot.steps.values()):
            yield self._close()
            return
        room = self._room()
        for planned in self.plan.steps.values():
            for action in self._step(planned, self.snapshot.steps[planned.id]):
                if isinstance(action, Restart) and self.plan.suspended:
                    continue
                if isinstance(action, Begin):
                    if room <= 0:
                        continue
                    room -= 1
                yield action
        if self.snapshot.run.deadline is not None and not self.expired:
            yield Wake(self.snapshot.run.deadline)

    def _room(self) -> int:
        if self.plan.suspended:
            return 0
        limit = self.plan.parallelism or len(self.plan.steps)
        running = (step for step in self.snapshot.steps.values() if step.state is StepState.RUNNING)
        return limit - sum(1 for _ in running)

    def _step(self, planned: PlannedStep, step: Step) -> Iterator[Action]:
        match step.state:
            case StepState.PENDING:
                yield from self._pending(planned)
            case StepState.RETRYING:
                yield from self._retrying(step)
            case StepState.RUNNING:
                yield from self._running(planned, step)
            case _:
                return

    # ---- steps that have not begun

    def _pending(self, planned: PlannedStep) -> Iterator[Action]:
        if self._stopping:
            yield Settle(planned.id, StepState.CANCELLED, self._ending_failure)
        elif self._failing_fast:
            yield Settle(planned.id, StepState.OMITTED, reason=f"step `{self.unhandled[0].id}` failed")
        elif unmet := self._unmet_need(planned):
            yield Settle(planned.id, StepState.OMITTED, reason=f"step `{unmet.id}` is {unmet.state.value}")
        elif self._settled(planned.needs):
            yield self._chosen(planned)

    def _chosen(self, planned: PlannedStep) -> Action:
        branch = planned.branch
        if branch is None or self._side(branch.conditional) == branch.side:
            return Begin(planned.id, 1)
        return Settle(planned.id, StepState.SKIPPED, reason=f"step `{branch.conditional}` did not choose it")

    def _side(self, conditional: StepId) -> JSON:
        chosen = self.snapshot.steps[conditional].outputs.get("branch")
        return chosen.value if isinstance(chosen, Inline) else None

    def _unmet_need(self, planned: PlannedStep) -> Step | None:
        strict = (self.snapshot.steps[need] for need in sorted(planned.needs - planned.survives))
        return next((step for step in strict if step.state in _UNMET), None)

    def _settled(self, needs: Set[StepId]) -> bool:
        return all(self.snapshot.steps[need].state.final for need in needs)

    def _retrying(self, step: Step) -> Iterator[Action]:
        if self._stopping:
            yield Settle(step.id, StepState.CANCELLED, self._ending_failure)
        elif self._failing_fast:
            yield Settle(step.id, StepState.FAILED, step.failure)
        elif step.wake_at is not None and step.wake_at > self.snapshot.now:
            yield Wake(step.wake_at)
        else:
            yield Begin(step.id, step.attempts + 1)

    # ---- steps with an attempt

    def _running(self, planned: PlannedStep, step: Step) -> Iterator[Action]:
        attempt = self.snapshot.attempts[step.id]
        match attempt.state:
            case AttemptState.OPEN:
                yield from self._open(attempt)
            case AttemptState.SUCCEEDED:
                yield Settle(step.id, StepState.SUCCEEDED)
            case AttemptState.CANCELLED:
                yield self._cancelled(planned, step, attempt)
            case AttemptState.FAILED:
                yield self._failed(planned, step, attempt)
            case AttemptState.NEVER_STARTED:
                yield self._again(step, attempt, MAX_NEVER_STARTED)
            case AttemptState.LOST:
                yield self._lost(planned, step, attempt)
            case AttemptState.RELEASED:
                yield self._released(step, attempt)

    def _open(self, attempt: Attempt) -> Iterator[Action]:
        if self._killing:
            yield Stop(attempt.step, None)
        elif attempt.deadline is not None and attempt.deadline <= self.snapshot.now:
            yield Stop(attempt.step, Failure(FailureCode.TMO, "the attempt reached its timeout"))
        elif attempt.deadline is not None:
            yield Wake(attempt.deadline)

    def _cancelled(self, planned: PlannedStep, step: Step, attempt: Attempt) -> Action:
        """Where nobody asked the run to end, someone else ended the process: how far it came is not known."""
        if not self._stopping:
            return self._lost(planned, step, attempt)
        return Settle(step.id, StepState.CANCELLED, attempt.failure or self._ending_failure)

    def _failed(self, planned: PlannedStep, step: Step, attempt: Attempt) -> Action:
        failure = attempt.failure or Failure(FailureCode.UNK, "the attempt failed without a reason")
        if failure.reason == OUTCOME_UNKNOWN:
            return Settle(step.id, StepState.ERROR, failure)
        allowed = not self._stopping and not self._failing_fast and failure.code in planned.retry.codes
        if allowed and attempt.number < planned.retry.attempts:
            return Retry(step.id, retry_delay(planned.retry, attempt.number, attempt.nonce), failure)
        return Settle(step.id, StepState.FAILED, failure)

    def _lost(self, planned: PlannedStep, step: Step, attempt: Attempt) -> Action:
        """One that was to be ended is: whoever was first, how far it came is as little known."""
        if self._killing:
            return Settle(step.id, StepState.CANCELLED, self._ending_failure)
        if planned.on_loss is OnLoss.FAIL:
            message = f"its process ended without an outcome{_cause(attempt)}"
            remedy = "set idempotent: true to have it run again"
            failure = Failure(FailureCode.UNK, f"{message}; {remedy}", OUTCOME_UNKNOWN)
            return Settle(step.id, StepState.ERROR, failure)
        return self._again(step, attempt, MAX_CONTINUED)

    def _released(self, step: Step, attempt: Attempt) -> Action:
        if self._stopping:
            return Settle(step.id, StepState.CANCELLED, self._ending_failure)
        return Restart(step.id, attempt.restart)

    def _again(self, step: Step, attempt: Attempt, most: int) -> Action:
        if self._stopping:
            return Settle(step.id, StepState.CANCELLED, self._ending_failure)
        if attempt.restart < most:
            return Restart(step.id, attempt.restart + 1)
        message = f"its process was lost {attempt.restart + 1} times{_cause(attempt)}"
        return Settle(step.id, StepState.ERROR, Failure(FailureCode.ENV, message))

    # ---- the run

    @property
    def _stopping(self) -> bool:
        """Nothing new may begin."""
        return self.expired or self.snapshot.run.shutdown is not None

    @property
    def _failing_fast(self) -> bool:
        """No attempt may begin any more; those that run are let run to their end."""
        return bool(self.unhandled) and self.plan.failure_policy is FailurePolicy.FAIL_FAST

    @property
    def _killing(self) -> bool:
        """Open attempts are to be ended as well."""
        return self.expired or self.snapshot.run.shutdown in {Shutdown.CANCEL, Shutdown.TERMINATE}

    @property
    def _ending_failure(self) -> Failure | None:
        if self.expired:
            return Failure(FailureCode.TMO, "the run reached its deadline")
        return None

    def _close(self) -> Action:
        if self.snapshot.run.shutdown is not None:
            return Close(RunState.CANCELLED)
        if self.unhandled:
            first = min(self.unhandled, key=lambda step: step.finished_at or self.snapshot.now)
            failure = first.failure or Failure(FailureCode.UNK, "no reason was recorded")
            message = f"step `{first.id}` failed: {failure.message}"
            return Close(RunState.FAILED, Failure(failure.code, message, failure.reason))
        if self.expired and any(s.state is StepState.CANCELLED for s in self.snapshot.steps.values()):
            return Close(RunState.FAILED, self._ending_failure)
        return Close(RunState.SUCCEEDED)


def _cause(attempt: Attempt) -> str:
    return f" ({attempt.failure.message})" if attempt.failure else ""
