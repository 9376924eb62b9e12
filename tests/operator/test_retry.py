"""The run that retries another one."""

from datetime import timedelta
from uuid import UUID

from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import Run, RunRef, Snapshot, Step, StepId
from pilothouse.records.states import RunState, StepState
from pilothouse.records.values import BlobRef, Inline, Outputs
from pilothouse_operator.retry import retried
from tests.operator.attempts import NOW

GAVE: Outputs = {"stdout": Inline("hello"), "all": BlobRef("sha256:1", 9)}


def snapshot(deadline: int | None = None) -> Snapshot:
    run = Run(
        ref=RunRef(UUID(int=1), UUID(int=2)),
        number=4,
        namespace="team-a",
        workflow="hello",
        workflow_uid=UUID(int=3),
        key="sha256:1",
        closure={"version": 1},
        params={"n": 3},
        state=RunState.FAILED,
        created_at=NOW,
        deadline=None if deadline is None else NOW + timedelta(seconds=deadline),
        requests={"retry": "1"},
    )
    failure = Failure(FailureCode.EXE, "exit code 1")
    steps = [
        Step(StepId(state.value), "runCommand", state, 2, 1, 3, GAVE, failure, NOW, NOW, NOW)
        for state in StepState
        if state.final
    ]
    return Snapshot(run, {step.id: step for step in steps}, {}, NOW)


def test_only_what_succeeded_is_taken_over_with_what_it_gave() -> None:
    steps = {step.id.path: step for step in retried(snapshot(), {}).steps}
    assert steps.keys() == {state.value for state in StepState if state.final}
    taken = steps.pop("Succeeded")
    assert (taken.state, taken.outputs) == (StepState.SUCCEEDED, GAVE)
    for step in steps.values():
        assert (step.state, step.outputs) == (StepState.PENDING, {})


def test_it_is_the_next_run_of_the_same_definition() -> None:
    before = snapshot().run
    run = retried(snapshot(), {"retry": "2"})
    assert (run.key, run.closure, run.params) == (before.key, before.closure, before.params)
    assert (run.tenant, run.namespace, run.workflow) == (before.ref.tenant, before.namespace, before.workflow)
    assert run.requests == {"retry": "2"}
    assert run.run == retried(snapshot(), {}).run != before.ref.run


def test_it_has_as_much_time_as_the_one_before() -> None:
    assert retried(snapshot(90), {}).deadline_seconds == 90
    assert retried(snapshot(), {}).deadline_seconds is None
