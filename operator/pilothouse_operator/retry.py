"""Retrying a run: a new run that takes over what succeeded and does the rest again. Pure."""

from collections.abc import Mapping
from uuid import uuid5

from pilothouse.records.runs import NewRun, NewStep, Snapshot, Step
from pilothouse.records.states import StepState


def retried(snapshot: Snapshot, requests: Mapping[str, str]) -> NewRun:
    """The run that follows this one, with the same frozen definition. `requests` are the verbs that stand by now."""
    run = snapshot.run
    return NewRun(
        tenant=run.ref.tenant,
        run=uuid5(run.workflow_uid, f"run {run.number + 1}"),
        namespace=run.namespace,
        workflow=run.workflow,
        workflow_uid=run.workflow_uid,
        key=run.key,
        closure=run.closure,
        params=run.params,
        steps=[_step(step) for step in snapshot.steps.values()],
        deadline_seconds=(run.deadline - run.created_at).total_seconds() if run.deadline else None,
        requests=requests,
    )


def _step(step: Step) -> NewStep:
    """Only success is taken over: what was skipped may be chosen once what failed has succeeded."""
    if step.state is StepState.SUCCEEDED:
        return NewStep(step.id, step.kind, step.state, step.outputs)
    return NewStep(step.id, step.kind)
