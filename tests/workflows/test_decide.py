"""The brain, as tables: what it asks for in every state that a step, a need or a run can be in."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from pilothouse.records.failures import OUTCOME_UNKNOWN, Failure, FailureCode
from pilothouse.records.runs import Attempt, AttemptRef, Run, RunRef, Snapshot, Step, StepId
from pilothouse.records.states import AttemptState, RunState, Shutdown, StepState
from pilothouse.records.values import Inline
from pilothouse.workflows.actions import Begin, Close, Restart, Retry, Settle, Stop, Wake
from pilothouse.workflows.decide import MAX_CONTINUED, MAX_NEVER_STARTED, decide
from pilothouse.workflows.plan import Branch, FailurePolicy, OnLoss, Plan, PlannedStep, RetryPolicy

NOW = datetime(2026, 1, 1, tzinfo=UTC)
REF = RunRef(UUID(int=1), UUID(int=2))
A, B, C = StepId("a"), StepId("b"), StepId("c")
BROKEN = Failure(FailureCode.EXE, "exit code 1")


def plan_of(*steps: PlannedStep, **more: object) -> Plan:
    return replace(Plan({step.id: step for step in steps}), **more)  # type: ignore[arg-type]


def planned(id_: StepId, **more: object) -> PlannedStep:
    return replace(PlannedStep(id_, "runCommand"), **more)  # type: ignore[arg-type]


def step(id_: StepId, state: StepState, **more: object) -> Step:
    made = Step(id_, "runCommand", state, fence=1, attempts=1)
    if state in {StepState.FAILED, StepState.ERROR}:
        made = replace(made, failure=BROKEN)
    return replace(made, **more)  # type: ignore[arg-type]


def attempt(id_: StepId, state: AttemptState, **more: object) -> Attempt:
    made = Attempt(AttemptRef(REF, UUID(int=3), 1), id_, 1, 0, "0" * 32, state, NOW)
    return replace(made, **more)  # type: ignore[arg-type]


def snapshot(*steps: Step, attempts: tuple[Attempt, ...] = (), **run: object) -> Snapshot:
    base = Run(REF, 1, "default", "w", UUID(int=4), "sha256:0", {}, {}, RunState.RUNNING, NOW)
    made = replace(base, **run)  # type: ignore[arg-type]
    return Snapshot(made, {s.id: s for s in steps}, {a.step: a for a in attempts}, NOW)


def settled(id_: StepId, state: StepState, actions: Sequence[object]) -> bool:
    return any(isinstance(a, Settle) and a.step == id_ and a.state is state for a in actions)


NEED_TABLE = [
    # the need's final state, does b read its state?, what becomes of b
    (StepState.SUCCEEDED, False, "runs"),
    (StepState.SKIPPED, False, "runs"),
    (StepState.FAILED, False, "omitted"),
    (StepState.ERROR, False, "omitted"),
    (StepState.CANCELLED, False, "omitted"),
    (StepState.OMITTED, False, "omitted"),
    (StepState.SUCCEEDED, True, "runs"),
    (StepState.SKIPPED, True, "runs"),
    (StepState.FAILED, True, "runs"),
    (StepState.ERROR, True, "runs"),
    (StepState.CANCELLED, True, "runs"),
    (StepState.OMITTED, True, "runs"),
]


@pytest.mark.parametrize(("state", "reads_state", "becomes"), NEED_TABLE)
@pytest.mark.parametrize("policy", FailurePolicy)
def test_what_becomes_of_a_step_whose_need_is_settled(
    state: StepState, reads_state: bool, becomes: str, policy: FailurePolicy
) -> None:
    survives = frozenset({A}) if reads_state else frozenset()
    plan = plan_of(planned(A), planned(B, needs=frozenset({A}), survives=survives), failure_policy=policy)
    actions = decide(plan, snapshot(step(A, state), step(B, StepState.PENDING)))
    if becomes == "runs":
        assert actions == [Begin(B, 1)]
    else:
        assert settled(B, StepState.OMITTED, actions)


@pytest.mark.parametrize("state", [state for state in StepState if not state.final])
def test_a_step_waits_while_a_need_is_open(state: StepState) -> None:
    plan = plan_of(planned(A), planned(B, needs=frozenset({A})))
    attempts = (attempt(A, AttemptState.OPEN),) if state is StepState.RUNNING else ()
    actions = decide(plan, snapshot(step(A, state), step(B, StepState.PENDING), attempts=attempts))
    assert not any(isinstance(action, Begin | Settle) and action.step == B for action in actions)


@pytest.mark.parametrize(
    ("policy", "independent"),
    [(FailurePolicy.FAIL_FAST, "omitted"), (FailurePolicy.FINISH_ALL, "runs")],
)
def test_an_unhandled_failure_stops_independent_steps_only_under_fail_fast(
    policy: FailurePolicy, independent: str
) -> None:
    plan = plan_of(planned(A), planned(B), failure_policy=policy)
    actions = decide(plan, snapshot(step(A, StepState.FAILED), step(B, StepState.PENDING)))
    assert (Begin(B, 1) in actions) == (independent == "runs")
    assert settled(B, StepState.OMITTED, actions) == (independent == "omitted")


@pytest.mark.parametrize(("policy", "goes_on"), [(FailurePolicy.FAIL_FAST, False), (FailurePolicy.FINISH_ALL, True)])
def test_under_fail_fast_no_further_attempt_begins_after_an_unhandled_failure(
    policy: FailurePolicy, goes_on: bool
) -> None:
    again = RetryPolicy(attempts=9)
    plan = plan_of(planned(A), planned(B, retry=again), planned(C, retry=again), failure_policy=policy)
    waiting = step(B, StepState.RETRYING, wake_at=NOW, failure=BROKEN)
    failed = attempt(C, AttemptState.FAILED, failure=BROKEN)
    actions = decide(plan, snapshot(step(A, StepState.FAILED), waiting, step(C, StepState.RUNNING), attempts=(failed,)))
    if goes_on:
        assert actions == [Begin(B, 2), Retry(C, 0.0, BROKEN)]
    else:
        assert actions == [Settle(B, StepState.FAILED, BROKEN), Settle(C, StepState.FAILED, BROKEN)]


def test_a_failure_that_another_step_reads_fails_neither_the_run_nor_its_branches() -> None:
    reader = planned(B, needs=frozenset({A}), survives=frozenset({A}))
    plan = plan_of(planned(A), reader, planned(C))
    open_steps = snapshot(step(A, StepState.FAILED), step(B, StepState.PENDING), step(C, StepState.PENDING))
    assert decide(plan, open_steps) == [Begin(B, 1), Begin(C, 1)]
    done = snapshot(*(step(A, StepState.FAILED), step(B, StepState.SUCCEEDED), step(C, StepState.SUCCEEDED)))
    assert decide(plan, done) == [Close(RunState.SUCCEEDED)]


@pytest.mark.feature("B36")
@pytest.mark.parametrize(
    ("conditional", "chosen", "then", "otherwise"),
    [
        (StepState.SUCCEEDED, "then", "runs", StepState.SKIPPED),
        (StepState.SUCCEEDED, "else", StepState.SKIPPED, "runs"),
        (StepState.SKIPPED, None, StepState.SKIPPED, StepState.SKIPPED),
        (StepState.FAILED, None, StepState.OMITTED, StepState.OMITTED),
        (StepState.CANCELLED, None, StepState.OMITTED, StepState.OMITTED),
    ],
)
def test_a_conditional_runs_the_side_that_it_chose(
    conditional: StepState, chosen: str | None, then: object, otherwise: object
) -> None:
    need = frozenset({A})
    plan = plan_of(
        planned(A, kind="conditional"),
        planned(B, needs=need, branch=Branch(A, "then")),
        planned(C, needs=need, branch=Branch(A, "else")),
        failure_policy=FailurePolicy.FINISH_ALL,
    )
    outputs = {"branch": Inline(chosen)} if chosen else {}
    decision = step(A, conditional, outputs=outputs)
    actions = decide(plan, snapshot(decision, step(B, StepState.PENDING), step(C, StepState.PENDING)))
    for id_, becomes in ((B, then), (C, otherwise)):
        if isinstance(becomes, StepState):
            assert settled(id_, becomes, actions)
        else:
            assert Begin(id_, 1) in actions


ENDED_TABLE = [
    # the attempt's end, plan, what follows
    (AttemptState.SUCCEEDED, {}, {}, Settle(A, StepState.SUCCEEDED)),
    (AttemptState.FAILED, {}, {"failure": BROKEN}, Settle(A, StepState.FAILED, BROKEN)),
    (
        AttemptState.FAILED,
        {"retry": RetryPolicy(attempts=2, delay=4, max_delay=4)},
        {"failure": BROKEN},
        Retry(A, 4, BROKEN),
    ),
    (
        AttemptState.FAILED,
        {"retry": RetryPolicy(attempts=2)},
        {"failure": BROKEN, "number": 2},
        Settle(A, StepState.FAILED, BROKEN),
    ),
    (
        AttemptState.FAILED,
        {"retry": RetryPolicy(attempts=5)},
        {"failure": Failure(FailureCode.INP, "bad")},
        Settle(A, StepState.FAILED, Failure(FailureCode.INP, "bad")),
    ),
    (
        AttemptState.FAILED,
        {"retry": RetryPolicy(attempts=5)},
        {"failure": Failure(FailureCode.TMO, "late")},
        Retry(A, 0.0, Failure(FailureCode.TMO, "late")),
    ),
    (
        AttemptState.FAILED,
        {"retry": RetryPolicy(attempts=5)},
        {"failure": Failure(FailureCode.UNK, "?", OUTCOME_UNKNOWN)},
        Settle(A, StepState.ERROR, Failure(FailureCode.UNK, "?", OUTCOME_UNKNOWN)),
    ),
    (AttemptState.NEVER_STARTED, {}, {}, Restart(A, 1)),
    (AttemptState.NEVER_STARTED, {}, {"restart": MAX_NEVER_STARTED}, StepState.ERROR),
    (AttemptState.LOST, {"on_loss": OnLoss.FAIL}, {}, StepState.ERROR),
    (AttemptState.LOST, {"on_loss": OnLoss.RERUN}, {}, Restart(A, 1)),
    (AttemptState.LOST, {"on_loss": OnLoss.CONTINUE}, {"restart": 4}, Restart(A, 5)),
    (AttemptState.LOST, {"on_loss": OnLoss.CONTINUE}, {"restart": MAX_CONTINUED}, StepState.ERROR),
    (AttemptState.RELEASED, {"on_loss": OnLoss.CONTINUE}, {"restart": MAX_CONTINUED}, Restart(A, MAX_CONTINUED)),
    (AttemptState.CANCELLED, {"on_loss": OnLoss.FAIL}, {}, StepState.ERROR),  # nobody had asked for it
    (AttemptState.CANCELLED, {"on_loss": OnLoss.RERUN}, {}, Restart(A, 1)),
]


@pytest.mark.parametrize(("state", "plan", "tried", "follows"), ENDED_TABLE)
@pytest.mark.feature("B42")
def test_what_follows_the_end_of_an_attempt(
    state: AttemptState, plan: dict[str, object], tried: dict[str, object], follows: object
) -> None:
    running = snapshot(step(A, StepState.RUNNING), attempts=(attempt(A, state, **tried),))
    (action,) = decide(plan_of(planned(A, **plan)), running)
    if isinstance(follows, StepState):
        assert isinstance(action, Settle)
        assert action.state is follows
    else:
        assert action == follows


def test_a_lost_command_whose_outcome_is_unknown_says_so() -> None:
    running = snapshot(step(A, StepState.RUNNING), attempts=(attempt(A, AttemptState.LOST),))
    (action,) = decide(plan_of(planned(A)), running)
    assert isinstance(action, Settle)
    assert action.failure is not None
    assert action.failure.reason == OUTCOME_UNKNOWN
    assert "idempotent: true" in action.failure.message


@pytest.mark.parametrize("verb", Shutdown)
def test_a_shutdown_lets_nothing_new_begin(verb: Shutdown) -> None:
    plan = plan_of(planned(A), planned(B), planned(C, retry=RetryPolicy(attempts=9)))
    asked = snapshot(
        step(A, StepState.RUNNING),
        step(B, StepState.PENDING),
        step(C, StepState.RETRYING, wake_at=NOW),
        attempts=(attempt(A, AttemptState.OPEN),),
        shutdown=verb,
    )
    actions = decide(plan, asked)
    assert settled(B, StepState.CANCELLED, actions)
    assert settled(C, StepState.CANCELLED, actions)
    assert any(isinstance(action, Stop) for action in actions) == (verb is not Shutdown.STOP)


@pytest.mark.parametrize("verb", Shutdown)
@pytest.mark.parametrize(
    "ended", [AttemptState.FAILED, AttemptState.NEVER_STARTED, AttemptState.RELEASED, AttemptState.CANCELLED]
)
def test_a_shutdown_outranks_retries_and_restarts(verb: Shutdown, ended: AttemptState) -> None:
    failure = BROKEN if ended is AttemptState.FAILED else None
    running = snapshot(step(A, StepState.RUNNING), attempts=(attempt(A, ended, failure=failure),), shutdown=verb)
    (action,) = decide(plan_of(planned(A, retry=RetryPolicy(attempts=9))), running)
    assert isinstance(action, Settle)


@pytest.mark.parametrize("on_loss", OnLoss)
@pytest.mark.parametrize(
    ("verb", "follows"),
    [(Shutdown.CANCEL, StepState.CANCELLED), (Shutdown.TERMINATE, StepState.CANCELLED), (Shutdown.STOP, None)],
)
def test_a_process_that_is_lost_while_it_is_to_be_ended_is_ended(
    verb: Shutdown, follows: StepState | None, on_loss: OnLoss
) -> None:
    lost = snapshot(step(A, StepState.RUNNING), attempts=(attempt(A, AttemptState.LOST),), shutdown=verb)
    (action,) = decide(plan_of(planned(A, on_loss=on_loss)), lost)
    assert isinstance(action, Settle)
    assert action.state is (follows or (StepState.ERROR if on_loss is OnLoss.FAIL else StepState.CANCELLED))


def test_a_run_that_was_shut_down_is_cancelled_whatever_its_steps_came_to() -> None:
    done = snapshot(step(A, StepState.FAILED), step(B, StepState.SUCCEEDED), shutdown=Shutdown.CANCEL)
    assert decide(plan_of(planned(A), planned(B)), done) == [Close(RunState.CANCELLED)]


def test_a_deadline_ends_what_runs_and_fails_the_run_with_a_timeout() -> None:
    plan = plan_of(planned(A), planned(B, needs=frozenset({A})))
    late = NOW - timedelta(seconds=1)
    running = snapshot(
        step(A, StepState.RUNNING),
        step(B, StepState.PENDING),
        attempts=(attempt(A, AttemptState.OPEN),),
        deadline=late,
    )
    actions = decide(plan, running)
    assert Stop(A, None) in actions
    assert settled(B, StepState.CANCELLED, actions)
    ended = snapshot(step(A, StepState.CANCELLED), step(B, StepState.CANCELLED), deadline=late)
    (action,) = decide(plan, ended)
    assert isinstance(action, Close)
    assert action.state is RunState.FAILED
    assert action.failure is not None
    assert action.failure.code is FailureCode.TMO


def test_a_run_whose_steps_all_ended_before_its_deadline_succeeds_after_it() -> None:
    late = snapshot(step(A, StepState.SUCCEEDED), deadline=NOW - timedelta(seconds=1))
    assert decide(plan_of(planned(A)), late) == [Close(RunState.SUCCEEDED)]


def test_an_attempt_past_its_deadline_is_ended_with_a_timeout() -> None:
    running = snapshot(step(A, StepState.RUNNING), attempts=(attempt(A, AttemptState.OPEN, deadline=NOW),))
    (action,) = decide(plan_of(planned(A)), running)
    assert isinstance(action, Stop)
    assert action.failure is not None
    assert action.failure.code is FailureCode.TMO


def test_the_earliest_time_is_the_one_to_wake_at() -> None:
    soon, later = NOW + timedelta(seconds=5), NOW + timedelta(seconds=9)
    plan = plan_of(planned(A), planned(B))
    waiting = snapshot(
        step(A, StepState.RETRYING, wake_at=later),
        step(B, StepState.RUNNING),
        attempts=(attempt(B, AttemptState.OPEN, deadline=soon),),
        deadline=NOW + timedelta(hours=1),
    )
    assert decide(plan, waiting) == [Wake(soon)]


def test_a_retry_begins_once_its_time_has_come() -> None:
    waiting = snapshot(step(A, StepState.RETRYING, wake_at=NOW, attempts=2))
    assert decide(plan_of(planned(A)), waiting) == [Begin(A, 3)]


@pytest.mark.feature("B32")
def test_no_more_steps_begin_than_parallelism_allows() -> None:
    ids = [StepId(name) for name in "abcde"]
    plan = plan_of(*map(planned, ids), parallelism=3)
    states = [StepState.RUNNING, *[StepState.PENDING] * 4]
    some = snapshot(*map(step, ids, states), attempts=(attempt(ids[0], AttemptState.OPEN),))
    assert decide(plan, some) == [Begin(ids[1], 1), Begin(ids[2], 1)]


def test_the_first_unhandled_failure_is_the_run_s() -> None:
    first = replace(step(B, StepState.ERROR), finished_at=NOW, failure=Failure(FailureCode.RES, "no memory"))
    second = replace(step(A, StepState.FAILED), finished_at=NOW + timedelta(seconds=1))
    (action,) = decide(plan_of(planned(A), planned(B)), snapshot(second, first))
    assert action == Close(RunState.FAILED, Failure(FailureCode.RES, "step `b` failed: no memory"))


@pytest.mark.parametrize("state", [state for state in RunState if state.final])
def test_nothing_is_done_to_a_finished_run(state: RunState) -> None:
    assert decide(plan_of(planned(A)), snapshot(step(A, StepState.PENDING), state=state)) == []
