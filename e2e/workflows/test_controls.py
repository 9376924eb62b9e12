"""Suspending, shutting down, running again: what controls a run, and never starts one by itself."""

import pytest

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, light, shell, workflow

RERUN = "pilothouse.dev/rerunRequestedAt"
RETRY = "pilothouse.dev/retryRequestedAt"


@pytest.fixture(scope="module")
def mine(release: Release, kubectl: Kubectl, shared_namespace: str) -> Kubectl:
    return kubectl.within(shared_namespace)


def _rows(release: Release, applied: Applied) -> Rows:
    return Rows(release, applied.kubectl.namespace or "", applied.name)


def _run(applied: Applied, number: int) -> str:
    """The state in which that run has ended."""
    applied.kubectl.wait(f"jsonpath={{.status.run.number}}={number}", f"workflow/{applied.name}")
    state: str = applied.finished()["status"]["run"]["state"]
    return state


def test_a_suspended_workflow_begins_when_it_is_let_go(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("held", light("a"), suspend=True))
    status = applied.seen()["status"]
    assert status.get("run") is None
    assert applied.condition("Suspended")["status"] == "True"
    assert applied.condition("Ready")["reason"] == "SuspendedByUser"
    assert _rows(release, applied).runs() == []
    applied.patch({"spec": {"suspend": False}})
    assert _run(applied, 1) == "Succeeded"
    assert applied.condition("Suspended") == {}


def test_suspending_what_has_ended_starts_nothing_and_holds_back_the_next_run(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("later", light("a", "A")))
    applied.finished()
    applied.patch({"spec": {"suspend": True}})
    applied.seen()
    applied.patch({"spec": {"suspend": None}})
    assert applied.nudged()["status"]["run"]["number"] == 1
    mine.apply(workflow("later", light("a", "B"), suspend=True))
    assert applied.nudged()["status"]["run"]["number"] == 1
    assert len(_rows(release, applied).runs()) == 1
    applied.patch({"spec": {"suspend": False}})
    assert _run(applied, 2) == "Succeeded"


def test_a_run_that_is_suspended_ends_its_step_and_begins_no_other(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("paused", shell("first", "sleep 4"), light("second", needs=["first"])))
    until(lambda: [pod for pod in applied.pods() if pod["status"]["phase"] == "Running"], "the first step runs")
    applied.patch({"spec": {"suspend": True}})
    mine.wait("jsonpath={.status.run.progress}=1/2", "workflow/paused")
    status = applied.nudged()["status"]
    assert (status["run"]["state"], status["run"]["progress"]) == ("Running", "1/2")
    assert applied.condition("Suspended")["status"] == "True"
    applied.patch({"spec": {"suspend": False}})
    assert _run(applied, 1) == "Succeeded"
    assert [attempt.path for attempt in _rows(release, applied).attempts() if attempt.carrier] == ["first"]


def test_nothing_runs_while_shutdown_is_set(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("shut", light("a"), shutdown="Cancel"))
    applied.stalled()
    assert applied.condition("Stalled")["reason"] == "Cancelled"
    assert _rows(release, applied).runs() == []
    applied.patch({"spec": {"shutdown": None}})
    assert _run(applied, 1) == "Succeeded"
    applied.patch({"spec": {"shutdown": "Terminate"}})
    applied.seen()
    applied.patch({"spec": {"shutdown": None}})
    assert applied.nudged()["status"]["run"]["number"] == 1
    assert [run.state for run in _rows(release, applied).runs()] == ["Succeeded"]


def test_shutdown_ends_a_run_and_taking_it_away_does_not_begin_it_again(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("ended", shell("sleeps", "sleep 600"), light("after", needs=["sleeps"])))
    until(lambda: [pod for pod in applied.pods() if pod["status"]["phase"] == "Running"], "the step runs")
    applied.patch({"spec": {"shutdown": "Cancel"}})
    assert applied.finished()["status"]["run"]["state"] == "Cancelled"
    assert applied.condition("Stalled")["reason"] == "Cancelled"
    until(lambda: not applied.pods(), "its Pods are gone", 60)
    applied.patch({"spec": {"shutdown": None}})
    assert applied.nudged()["status"]["run"]["number"] == 1
    assert len(_rows(release, applied).runs()) == 1


def test_a_rerun_is_asked_for_by_any_new_value_and_by_a_new_one_only(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("verbs", light("a")))
    applied.finished()
    for number, value in ((2, "one"), (3, "two")):
        mine("annotate", "--overwrite", "workflow", "verbs", f"{RERUN}={value}")
        assert _run(applied, number) == "Succeeded"
    mine("annotate", "--overwrite", "workflow", "verbs", f"{RERUN}=two")
    assert applied.nudged()["status"]["run"]["number"] == 3
    mine("annotate", "workflow", "verbs", f"{RERUN}-")
    assert applied.nudged()["status"]["run"]["number"] == 3
    runs = _rows(release, applied).runs()
    assert [run.number for run in runs] == [1, 2, 3]
    assert len({run.key for run in runs}) == 1


def test_a_retry_repeats_what_failed_and_nothing_else(mine: Kubectl, release: Release) -> None:
    steps = [shell("good", "true"), shell("bad", "exit 1", needs=["good"]), light("last", needs=["bad"])]
    applied = Applied.of(mine, workflow("retried", *steps))
    assert applied.finished()["status"]["run"]["state"] == "Failed"
    mine("annotate", "workflow", "retried", f"{RETRY}=once")
    assert _run(applied, 2) == "Failed"
    assert applied.nudged()["status"]["run"]["number"] == 2
    rows = _rows(release, applied)
    assert [attempt.path for attempt in rows.attempts(1) if attempt.carrier] == ["good", "bad"]
    assert [attempt.path for attempt in rows.attempts(2) if attempt.carrier] == ["bad"]
    assert [step.type for step in rows.events(2)].count("RunStarted") == 1
