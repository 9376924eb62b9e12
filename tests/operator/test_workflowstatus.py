"""The status of a Workflow: bounded, steady, and by the rules that every object of ours keeps."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.api.conditions import check_object
from pilothouse.api.workflow import WorkflowStatus
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import Run, RunRef, Snapshot, Step, StepId
from pilothouse.records.states import RunState, StepState
from pilothouse.records.values import BlobRef, Inline, Outputs
from pilothouse_operator.verdict import Standing, Verdict
from pilothouse_operator.workflowstatus import STEPS_LIMIT, differs, status_of, verdict_of

NOW = datetime(2027, 1, 31, 12, tzinfo=UTC)
LIMIT = 64 * 1024
OBJECT: dict[str, Any] = {"metadata": {"generation": 3}}
WORKING = Verdict(Standing.WORKING, "Progressing", "run 1: a")


def step(name: str, state: StepState = StepState.SUCCEEDED, **more: Any) -> Step:
    return Step(StepId(name), "runCommand", state, **more)


def snapshot(
    steps: Iterable[Step] = (), state: RunState = RunState.RUNNING, outputs: Outputs | None = None, **run: Any
) -> Snapshot:
    finished = NOW if state.final else None
    of = Run(
        ref=RunRef(UUID(int=1), UUID(int=2)),
        number=1,
        namespace="team-a",
        workflow="hello",
        workflow_uid=UUID(int=3),
        key="sha256:" + "0" * 64,
        closure={},
        params={},
        state=state,
        created_at=NOW - timedelta(minutes=5),
        finished_at=finished,
        outputs=outputs or {},
        **run,
    )
    return Snapshot(of, {each.id: each for each in steps}, {}, NOW)


def status(taken: Snapshot | None, verdict: Verdict | None = None, **more: Any) -> dict[str, Any]:
    """The status of the snapshot, which keeps the rules and fits its schema."""
    said = verdict or (WORKING if taken is None else verdict_of(taken, suspended=more.get("suspended", False)))
    found = status_of(more.pop("obj", OBJECT), said, taken, NOW, **more)
    assert check_object({**OBJECT, "status": found}) == []
    WorkflowStatus.model_validate(found, by_alias=True)
    return found


def condition(status: Mapping[str, Any], type_: str) -> tuple[str, str]:
    (found,) = [each for each in status["conditions"] if each["type"] == type_]
    return found["status"], found["reason"]


def types(status: Mapping[str, Any]) -> set[str]:
    return {each["type"] for each in status["conditions"]}


FAILED = snapshot([step("a", StepState.FAILED)], RunState.FAILED, failure=Failure(FailureCode.EXE, "exit code 3"))
UNKNOWN = Failure(FailureCode.UNK, "nobody knows", "OutcomeUnknown")
REFUSED = Failure(FailureCode.SEC, "no", "PolicyRefused")
LATE = Failure(FailureCode.TMO, "the run reached its deadline")
ENDED: list[tuple[Snapshot, str, str]] = [
    (snapshot([step("a")], RunState.SUCCEEDED), "True", "Succeeded"),
    (snapshot([step("a")], RunState.CANCELLED), "False", "Cancelled"),
    (FAILED, "False", "Failed"),
    (snapshot([], RunState.FAILED, failure=UNKNOWN), "False", "OutcomeUnknown"),
    (snapshot([], RunState.FAILED, failure=REFUSED), "False", "PolicyRefused"),
    (snapshot([], RunState.FAILED, failure=LATE), "False", "DeadlineExceeded"),
    (snapshot([], RunState.FAILED), "False", "Failed"),
]


@pytest.mark.parametrize(("taken", "ready", "reason"), ENDED)
def test_a_run_that_ended_is_finished_with_its_reason(taken: Snapshot, ready: str, reason: str) -> None:
    said = status(taken)
    assert condition(said, "Ready") == (ready, reason)
    assert condition(said, "Finished") == ("True", reason)
    assert types(said) == {"Ready", "Finished"} | ({"Stalled"} if ready == "False" else set())


def test_a_run_under_way_is_reconciling_and_not_finished() -> None:
    said = status(snapshot([step("a"), step("b", StepState.RUNNING), step("c", StepState.PENDING)]))
    assert condition(said, "Ready") == ("Unknown", "Progressing")
    assert condition(said, "Reconciling") == ("True", "Progressing")
    assert condition(said, "Finished") == ("False", "Progressing")
    assert said["run"]["progress"] == "1/3"
    assert "finishedAt" not in said["run"]


@pytest.mark.parametrize(
    ("verdict", "finished"),
    [
        (Verdict(Standing.WORKING, "Pending"), "False"),
        (Verdict(Standing.WAITING, "ReferenceNotFound"), "False"),
        (Verdict(Standing.UNKNOWN, "SuspendedByUser"), "False"),
        (Verdict(Standing.STALLED, "InvalidSpec"), "True"),
    ],
)
def test_a_finished_run_that_another_is_to_follow_finishes_nothing(verdict: Verdict, finished: str) -> None:
    said = status(ENDED[0][0], verdict)
    assert condition(said, "Finished") == (finished, verdict.reason)
    assert condition(said, "Ready")[0] != "True"


def test_a_workflow_without_a_run_says_nothing_of_one() -> None:
    said = status(None, Verdict(Standing.STALLED, "InvalidSpec", "spec.steps[0]: no"))
    assert types(said) == {"Ready", "Stalled"}
    assert "run" not in said
    assert (said["steps"], said["outputs"]) == ([], [])


def test_a_suspended_workflow_says_so_while_what_runs_goes_on() -> None:
    running = snapshot([step("a", StepState.RUNNING), step("b", StepState.PENDING)])
    said = status(running, suspended=True)
    assert condition(said, "Ready") == ("Unknown", "Progressing")
    assert condition(said, "Suspended") == ("True", "SuspendedByUser")
    idle = status(snapshot([step("a"), step("b", StepState.PENDING)]), suspended=True)
    assert condition(idle, "Ready") == ("Unknown", "SuspendedByUser")
    assert "Reconciling" not in types(idle)


def test_what_pods_wait_for_stands_at_their_steps_and_in_the_message() -> None:
    running = snapshot([step("a", StepState.RUNNING), step("b", StepState.RUNNING)])
    notes = {"b": "exceeded quota: q"}
    verdict = verdict_of(running, notes=notes)
    assert verdict.message == "run 1: b waits: exceeded quota: q"
    said = status(running, verdict, notes=notes)
    assert [each.get("message") for each in said["steps"]] == [None, "exceeded quota: q"]


def test_the_message_names_a_few_of_what_runs() -> None:
    running = snapshot([step(name, StepState.RUNNING) for name in "abcde"])
    assert verdict_of(running).message == "run 1: a, b, c and 2 more"


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    before = {"metadata": {"generation": 3}, "status": status(snapshot([step("a", StepState.RUNNING)]))}
    for each in before["status"]["conditions"]:
        each["lastTransitionTime"] = "2027-01-01T00:00:00Z"
    again = status(snapshot([step("a"), step("b", StepState.RUNNING)]), obj=before)
    assert {each["lastTransitionTime"] for each in again["conditions"]} == {"2027-01-01T00:00:00Z"}
    ended = status(snapshot([step("a"), step("b")], RunState.SUCCEEDED), obj=before)
    assert {each["lastTransitionTime"] for each in ended["conditions"]} == {"2027-01-31T12:00:00Z"}


def test_what_was_observed_is_this_generation() -> None:
    said = status(ENDED[0][0])
    assert said["observedGeneration"] == 3
    assert {each["observedGeneration"] for each in said["conditions"]} == {3}


# ---- bounds


def size(status: Mapping[str, Any]) -> int:
    """Bytes as the API server keeps it."""
    return len(json.dumps(status, ensure_ascii=False).encode())


@pytest.mark.parametrize("letter", ["x", "é", "€", "😀", "\n", "\x01", '"'])
def test_a_status_fits_whatever_the_steps_and_the_outputs_say(letter: str) -> None:
    failure = Failure(FailureCode.EXE, letter * 2_000)
    steps = [
        step(
            f"s{number:062}",
            StepState.FAILED,
            failure=failure,
            started_at=NOW,
            finished_at=NOW,
            attempts=100,
            fence=100,
        )
        for number in range(300)
    ]
    outputs: dict[str, Any] = {f"o{number:062}": Inline(letter * 600) for number in range(64)}
    taken = snapshot(steps, RunState.FAILED, outputs, failure=replace(failure, message=letter * 2_000))
    said = status(taken, suspended=True)
    assert len(said["steps"]) == STEPS_LIMIT
    assert len(said["outputs"]) == 64
    assert size(said) < LIMIT, size(said)


def test_of_too_many_steps_the_failed_the_active_and_the_newest_are_listed_in_their_order() -> None:
    def at(number: int) -> datetime:
        return NOW + timedelta(seconds=number)

    failed = [step(f"f{n}", StepState.FAILED, finished_at=at(n)) for n in range(10)]
    active = [step(f"r{n}", StepState.RUNNING, started_at=at(n)) for n in range(10)]
    done = [step(f"d{n}", finished_at=at(n)) for n in range(200)]
    pending = [step(f"p{n}", StepState.PENDING) for n in range(80)]
    said = status(snapshot([*pending, *done, *active, *failed]))
    assert [each["path"] for each in said["steps"]] == [
        *(f"d{n}" for n in range(120, 200)),
        *(f"r{n}" for n in range(10)),
        *(f"f{n}" for n in range(10)),
    ]


def test_outputs_stand_with_their_value_up_to_a_size_and_else_with_their_digest() -> None:
    outputs: dict[str, Any] = {
        "small": Inline({"a": [1, None]}),
        "none": Inline(None),
        "large": Inline("x" * 5_000),
        "blob": BlobRef("sha256:" + "1" * 64, 70_000),
    }
    small, none, large, blob = status(snapshot([], RunState.SUCCEEDED, outputs))["outputs"]
    assert small == {"name": "small", "value": {"a": [1, None]}}
    assert none == {"name": "none", "value": None}
    assert (large["size"], large["digest"][:7], "value" in large) == (5_002, "sha256:", False)
    assert blob == {"name": "blob", "digest": "sha256:" + "1" * 64, "size": 70_000}


def test_values_stop_where_all_of_them_together_would_be_too_much() -> None:
    outputs = {f"o{number}": Inline("x" * 3_000) for number in range(20)}
    shown = status(snapshot([], RunState.SUCCEEDED, outputs))["outputs"]
    with_value = [each for each in shown if "value" in each]
    assert 0 < len(with_value) < 20
    assert len(shown) == 20


# ---- whether it is to be written


def test_a_list_that_is_empty_is_as_good_as_none() -> None:
    assert not differs({"a": 1}, {"a": 1, "steps": []})
    assert not differs({"a": {}, "c": []}, {"a": {}})
    assert not differs(None, {"steps": []})
    assert differs({"a": 1}, {"a": 2})
    assert differs({"a": 1}, {})
    assert differs({"steps": [{"path": "a"}]}, {"steps": []})


def test_the_order_of_a_list_and_a_null_in_it_count() -> None:
    assert differs({"a": [1, 2]}, {"a": [2, 1]})
    assert differs({"a": [None]}, {"a": []})
    assert differs({"a": [{"name": "o"}]}, {"a": [{"name": "o", "value": None}]})


def test_a_status_that_was_written_is_not_written_again() -> None:
    taken = snapshot([step("a", StepState.RUNNING), step("b", StepState.PENDING)])
    written = status(taken)
    later = status_of({**OBJECT, "status": written}, verdict_of(taken), taken, NOW + timedelta(hours=1))
    assert not differs(written, later)


FINAL = [state for state in StepState if state.final]
OPEN = [state for state in StepState if not state.final]
STANDINGS = st.builds(Verdict, st.sampled_from(Standing), st.sampled_from(["A", "B"]), st.text(max_size=2_000))


@given(
    states=st.lists(st.sampled_from(StepState), max_size=5),
    run=st.sampled_from(RunState),
    verdict=st.none() | STANDINGS,
    suspended=st.booleans(),
    without=st.booleans(),
)
def test_every_status_keeps_the_rules(
    states: list[StepState], run: RunState, verdict: Verdict | None, suspended: bool, without: bool
) -> None:
    steps = [step(f"s{number}", state) for number, state in enumerate(states)]
    taken = None if without else snapshot(steps, run)
    first = status(taken, verdict, suspended=suspended)
    for each in first["conditions"]:
        assert len(each["message"]) <= 1024
    again = status(taken, verdict, suspended=suspended, obj={**OBJECT, "status": first})
    assert again == first
