"""What a Workflow asks of its latest run, by its spec and its annotations. Pure."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

from pilothouse.api.workflow import RERUN_REQUESTED_AT, RETRY_REQUESTED_AT, Workflow
from pilothouse.records.runs import Run
from pilothouse.records.states import RunState, Shutdown
from pilothouse.store.rules import weaker_than
from pilothouse_operator.ownership import key_of

VERBS = (RETRY_REQUESTED_AT, RERUN_REQUESTED_AT)
"""Annotations that ask for a run, each by any new value."""


class Asked(Enum):
    """What is to be done about the latest run before it is driven on. None of it can be undone."""

    NOTHING = "nothing"
    BEGIN = "begin"
    """The next run begins, with all that it does."""
    RETRY = "retry"
    """The next run begins, and takes over what succeeded in the latest."""
    END = "end"
    """The latest run is ended, as `ending` says."""


def asked_of(workflow: Workflow, latest: Run | None) -> Asked:
    """`latest` is None where this object has had no run yet."""
    spec = workflow.spec
    if latest is not None and not latest.state.final:
        ends = spec.shutdown is not None or asks_anew(workflow, latest)
        return Asked.END if ends and latest.shutdown in (None, *weaker_than(ending(workflow))) else Asked.NOTHING
    if spec.shutdown is not None or spec.suspend:
        return Asked.NOTHING
    if latest is None or asks_anew(workflow, latest):
        return Asked.BEGIN
    failed = latest.state is not RunState.SUCCEEDED
    return Asked.RETRY if failed and _new(RETRY_REQUESTED_AT, workflow, latest) else Asked.NOTHING


def brakes_of(obj: Mapping[str, Any]) -> tuple[bool, Shutdown | None]:
    """`suspend` and `shutdown` of an object that cannot be honoured as a whole: these are, whatever else is wrong."""
    spec = obj.get("spec") or {}
    verb = next((verb for verb in Shutdown if verb.value == spec.get("shutdown")), None)
    return spec.get("suspend") is True, verb


def ending(workflow: Workflow) -> Shutdown:
    """How a run ends that is asked to: as the user says, else so that the next one can begin."""
    return Shutdown(workflow.spec.shutdown) if workflow.spec.shutdown else Shutdown.CANCEL


def asks_anew(workflow: Workflow, latest: Run) -> bool:
    """Whether another run is to follow this one: for another key, or as `rerunRequestedAt` says."""
    return key_of(workflow) != latest.key or _new(RERUN_REQUESTED_AT, workflow, latest)


def requests_of(workflow: Workflow) -> dict[str, str]:
    """The verbs that stand on the object, with their values."""
    annotations = workflow.metadata.annotations or {}
    return {verb: annotations[verb] for verb in VERBS if verb in annotations}


def _new(verb: str, workflow: Workflow, latest: Run) -> bool:
    """Whether the verb stands with a value that it did not have when the run was created."""
    asked = requests_of(workflow)
    return verb in asked and asked[verb] != latest.requests.get(verb)
