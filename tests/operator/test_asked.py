"""What a Workflow asks of its latest run: a table over its spec, its annotations and the run."""

from typing import Any
from uuid import UUID

import pytest

from pilothouse.api.workflow import RERUN_REQUESTED_AT as RERUN
from pilothouse.api.workflow import RETRY_REQUESTED_AT as RETRY
from pilothouse.api.workflow import Workflow
from pilothouse.records.runs import Run, RunRef
from pilothouse.records.states import RunState, Shutdown
from pilothouse_operator.asked import Asked, asked_of, brakes_of, ending, requests_of
from pilothouse_operator.ownership import key_of
from tests.operator.attempts import NOW

A: list[dict[str, Any]] = [{"name": "a", "runCommand": {"command": ["true"]}}]
B: list[dict[str, Any]] = [{"name": "a", "runCommand": {"command": ["false"]}}]
NOTHING, BEGIN, RETRIED, END = Asked.NOTHING, Asked.BEGIN, Asked.RETRY, Asked.END
SUCCEEDED, FAILED, CANCELLED, RUNNING = RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED, RunState.RUNNING


def workflow(steps: list[dict[str, Any]] = A, annotations: dict[str, str] | None = None, **spec: Any) -> Workflow:
    metadata = {"name": "hello", "annotations": annotations or {}}
    return Workflow.model_validate({"metadata": metadata, "spec": {"steps": steps, **spec}})


def run(state: RunState, shutdown: Shutdown | None = None, **requests: str) -> Run:
    """A run of A."""
    verbs = {"retry": RETRY, "rerun": RERUN}
    return Run(
        ref=RunRef(UUID(int=1), UUID(int=2)),
        number=1,
        namespace="team-a",
        workflow="hello",
        workflow_uid=UUID(int=3),
        key=key_of(workflow()),
        closure={},
        params={},
        state=state,
        created_at=NOW,
        shutdown=shutdown,
        requests={verbs[verb]: value for verb, value in requests.items()},
    )


TABLE: list[tuple[str, Workflow, Run | None, Asked]] = [
    ("a new object", workflow(), None, BEGIN),
    ("a new object that is suspended", workflow(suspend=True), None, NOTHING),
    ("a new object that is shut down", workflow(shutdown="Stop"), None, NOTHING),
    ("a new object with verbs", workflow(annotations={RETRY: "1", RERUN: "1"}), None, BEGIN),
    ("the same key", workflow(), run(SUCCEEDED), NOTHING),
    ("the same key after a failure", workflow(), run(FAILED), NOTHING),
    ("the same key while it runs", workflow(), run(RUNNING), NOTHING),
    ("another key", workflow(B), run(SUCCEEDED), BEGIN),
    ("another key while it runs", workflow(B), run(RUNNING), END),
    ("another key while it is being ended", workflow(B), run(RUNNING, Shutdown.CANCEL), NOTHING),
    ("another key while it is being stopped", workflow(B), run(RUNNING, Shutdown.STOP), END),
    ("another key, suspended", workflow(B, suspend=True), run(SUCCEEDED), NOTHING),
    ("another key, suspended, while it runs", workflow(B, suspend=True), run(RUNNING), END),
    ("another key, shut down", workflow(B, shutdown="Cancel"), run(CANCELLED), NOTHING),
    ("only how it is controlled", workflow(parallelism=3, deadline="1h", suspend=True), run(SUCCEEDED), NOTHING),
    ("shut down while it runs", workflow(shutdown="Stop"), run(RUNNING), END),
    ("shut down while it is shut down so", workflow(shutdown="Stop"), run(RUNNING, Shutdown.STOP), NOTHING),
    ("shut down harder", workflow(shutdown="Terminate"), run(RUNNING, Shutdown.CANCEL), END),
    ("shut down softer", workflow(shutdown="Stop"), run(RUNNING, Shutdown.TERMINATE), NOTHING),
    ("shut down after its end", workflow(shutdown="Cancel"), run(SUCCEEDED), NOTHING),
    ("no longer shut down", workflow(), run(CANCELLED, Shutdown.CANCEL), NOTHING),
    ("a rerun", workflow(annotations={RERUN: "1"}), run(SUCCEEDED), BEGIN),
    ("a rerun of what failed", workflow(annotations={RERUN: "1"}), run(FAILED), BEGIN),
    ("a rerun while it runs", workflow(annotations={RERUN: "1"}), run(RUNNING), END),
    ("the same rerun", workflow(annotations={RERUN: "1"}), run(SUCCEEDED, rerun="1"), NOTHING),
    ("another rerun", workflow(annotations={RERUN: "2"}), run(SUCCEEDED, rerun="1"), BEGIN),
    ("a rerun taken away", workflow(), run(SUCCEEDED, rerun="1"), NOTHING),
    ("a rerun of an empty value", workflow(annotations={RERUN: ""}), run(SUCCEEDED), BEGIN),
    ("a rerun, suspended", workflow(annotations={RERUN: "1"}, suspend=True), run(SUCCEEDED), NOTHING),
    ("a retry", workflow(annotations={RETRY: "1"}), run(FAILED), RETRIED),
    ("a retry of what was cancelled", workflow(annotations={RETRY: "1"}), run(CANCELLED), RETRIED),
    ("a retry of what succeeded", workflow(annotations={RETRY: "1"}), run(SUCCEEDED), NOTHING),
    ("a retry while it runs", workflow(annotations={RETRY: "1"}), run(RUNNING), NOTHING),
    ("the same retry", workflow(annotations={RETRY: "1"}), run(FAILED, retry="1"), NOTHING),
    ("another retry", workflow(annotations={RETRY: "2"}), run(FAILED, retry="1"), RETRIED),
    ("a retry taken away", workflow(), run(FAILED, retry="1"), NOTHING),
    ("a retry, suspended", workflow(annotations={RETRY: "1"}, suspend=True), run(FAILED), NOTHING),
    ("a retry, shut down", workflow(annotations={RETRY: "1"}, shutdown="Stop"), run(CANCELLED), NOTHING),
    ("a retry and another key", workflow(B, {RETRY: "1"}), run(FAILED), BEGIN),
    ("a retry and a rerun", workflow(annotations={RETRY: "1", RERUN: "1"}), run(FAILED), BEGIN),
]


@pytest.mark.parametrize(
    ("applied", "latest", "expected"), [each[1:] for each in TABLE], ids=[each[0] for each in TABLE]
)
def test_what_is_asked(applied: Workflow, latest: Run | None, expected: Asked) -> None:
    assert asked_of(applied, latest) is expected


def test_a_run_ends_as_its_user_says_and_else_so_that_the_next_one_can_begin() -> None:
    assert ending(workflow(shutdown="Terminate")) is Shutdown.TERMINATE
    assert ending(workflow(B)) is Shutdown.CANCEL


@pytest.mark.parametrize(
    ("obj", "brakes"),
    [
        ({}, (False, None)),
        ({"spec": None}, (False, None)),
        ({"spec": {"suspend": True, "surprise": 1}}, (True, None)),
        ({"spec": {"suspend": "yes", "shutdown": "Now"}}, (False, None)),
        ({"spec": {"shutdown": "Terminate"}}, (False, Shutdown.TERMINATE)),
    ],
)
def test_the_brakes_of_an_object_that_cannot_be_read(obj: dict[str, Any], brakes: tuple[bool, Shutdown | None]) -> None:
    assert brakes_of(obj) == brakes


def test_requests_are_the_verbs_that_stand() -> None:
    assert requests_of(workflow(annotations={RETRY: "1", "team": "a"})) == {RETRY: "1"}
    assert requests_of(workflow()) == {}
