"""What a user can ask of a Workflow while it is there: another run, an end, a pause; and what asks for nothing."""

from typing import Any

import pytest

from pilothouse_operator.kube.resources import WORKFLOWS
from tests.operator.desk import NAMESPACE, Desk, command
from tests.operator.kubelet import framed

RETRY, RERUN = "pilothouse.dev/retryRequestedAt", "pilothouse.dev/rerunRequestedAt"
A, B = [command("a")], [{"name": "a", "runCommand": {"command": ["echo", "other"]}}]


async def ran(desk: Desk, name: str = "hello") -> Desk:
    """A Workflow whose first run has succeeded."""
    await desk.begin()
    desk.workflow(name=name)
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Finished", name) == ("True", "Succeeded")
    return desk


async def test_every_new_key_is_a_new_run_compared_with_the_latest_alone(desk: Desk) -> None:
    await ran(desk)
    for steps in (B, A):
        desk.edit(steps=steps)
        await desk.later(1)
        assert desk.condition("Finished") == ("False", "Progressing")
        desk.kubelet.succeed("a")
        await desk.settle()
    runs = await desk.runs()
    assert [run.number for run in runs] == [1, 2, 3]
    assert runs[0].key == runs[2].key != runs[1].key
    assert desk.condition("Ready") == ("True", "Succeeded")


async def test_a_new_key_ends_what_runs_and_then_begins(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(steps=B)
    await desk.settle()
    assert [run.state.value for run in await desk.runs()] == ["Running"]
    assert desk.condition("Finished") == ("False", "Progressing")
    desk.kubelet.deadline("a")
    await desk.settle()
    assert [run.state.value for run in await desk.runs()] == ["Cancelled", "Running"]
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.kubelet.executions == {"a": 2}


async def test_a_new_key_begins_although_nothing_tells_of_the_old_ones_end(desk: Desk) -> None:
    await desk.begin(prepare=desk.deafen)
    desk.workflow()
    await desk.settle()
    desk.edit(steps=B)
    desk.hold()
    await desk.settle()
    assert [run.state.value for run in await desk.runs()] == ["Cancelled", "Running"]


async def test_what_is_no_what_field_starts_nothing(desk: Desk) -> None:
    await ran(desk)
    before = desk.writes()
    desk.fake.change(WORKFLOWS, NAMESPACE, "hello", lambda obj: obj["metadata"].update(labels={"team": "a"}))
    desk.annotate("kubectl.kubernetes.io/last-applied-configuration", "{}")
    desk.edit(steps=A)
    await desk.later(100)
    assert desk.writes() == before
    desk.edit(failurePolicy="FinishAll", parallelism=3, deadline="1h", description="Other words.")
    await desk.later(100)
    assert len(await desk.runs()) == 1
    assert desk.object()["status"]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"deadline": "99999999999999999999999h"}, "InvalidSpec"),
        ({"schedule": {"cron": "* * * * *"}}, "NotSupported"),
        ({"ttlAfterFinished": "1h"}, "NotSupported"),
    ],
)
async def test_a_control_field_that_cannot_be_honoured_is_refused_and_ends_nothing(
    desk: Desk, spec: dict[str, Any], reason: str
) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(**spec)
    await desk.later(1)
    assert desk.condition("Stalled") == ("True", reason)
    assert desk.condition("Finished") == ("False", reason)
    desk.kubelet.end("a", framed())
    await desk.later(1)
    assert await desk.states() == {"a": "Succeeded"}
    desk.workflow()
    await desk.later(1)
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert len(await desk.runs()) == 1


async def test_suspend_and_shutdown_hold_whatever_else_is_wrong(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(suspend=True, surprise=1)
    await desk.settle()
    desk.kubelet.end("a", framed())
    await desk.later(1)
    assert desk.condition("Stalled") == ("True", "InvalidSpec")
    assert desk.condition("Suspended") == ("True", "SuspendedByUser")
    assert await desk.states() == {"a": "Succeeded", "b": "Pending"}
    desk.edit(shutdown="Cancel")
    await desk.later(1)
    assert await desk.states() == {"a": "Succeeded", "b": "Cancelled"}
    assert desk.condition("Finished") == ("True", "InvalidSpec")


async def test_a_suspended_workflow_begins_nothing_until_it_goes_on(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(suspend=True)
    await desk.settle()
    assert desk.condition("Ready") == ("Unknown", "SuspendedByUser")
    assert desk.condition("Suspended") == ("True", "SuspendedByUser")
    assert await desk.runs() == []
    desk.edit(suspend=None)
    await desk.later(1)
    assert desk.condition("Suspended") == ("", "")
    assert len(desk.kubelet.pods("a")) == 1


async def test_a_run_that_is_suspended_lets_what_runs_end_and_begins_nothing(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(suspend=True)
    await desk.settle()
    desk.kubelet.end("a", framed())
    await desk.later(1)
    assert await desk.states() == {"a": "Succeeded", "b": "Pending"}
    assert desk.condition("Ready") == ("Unknown", "SuspendedByUser")
    desk.edit(suspend=False)
    await desk.settle()
    desk.kubelet.succeed("b")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")


async def test_a_finished_run_that_is_asked_anew_while_suspended_waits(desk: Desk) -> None:
    await ran(desk)
    desk.edit(steps=B, suspend=True)
    await desk.settle()
    assert desk.condition("Ready") == ("Unknown", "SuspendedByUser")
    assert desk.condition("Finished") == ("False", "SuspendedByUser")
    assert desk.condition("Suspended") == ("True", "SuspendedByUser")
    assert len(await desk.runs()) == 1
    desk.edit(suspend=False)
    await desk.settle()
    assert len(await desk.runs()) == 2


@pytest.mark.parametrize("reason", ["OutOfcpu", "NodeAffinity"])
async def test_an_attempt_that_never_started_is_made_again_after_a_pause_and_no_outcome_is_lost(
    desk: Desk, reason: str
) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.edit(suspend=True)
    desk.kubelet.bind("a")
    desk.kubelet.fail("a", reason, "no room")
    await desk.later(100)
    assert (await desk.latest()).run.state.value == "Running"
    desk.edit(suspend=False)
    await desk.later(100)
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")


async def test_shutdown_ends_the_run_and_nothing_begins_while_it_is_set(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(shutdown="Cancel")
    await desk.settle()
    desk.kubelet.deadline("a")
    await desk.settle()
    assert await desk.states() == {"a": "Cancelled", "b": "Cancelled"}
    assert desk.condition("Stalled") == ("True", "Cancelled")
    assert desk.condition("Finished") == ("True", "Cancelled")
    desk.edit(steps=B)
    desk.annotate(RETRY, "1")
    desk.annotate(RERUN, "1")
    await desk.later(100)
    assert len(await desk.runs()) == 1
    assert desk.condition("Stalled") == ("True", "Cancelled")
    assert "shutdown" in desk.message()
    desk.edit(shutdown=None)
    await desk.settle()
    assert [run.number for run in await desk.runs()] == [1, 2]


async def test_taking_shutdown_away_starts_nothing_that_was_cancelled(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.edit(shutdown="Terminate")
    await desk.settle()
    assert desk.kubelet.pods() == []
    desk.edit(shutdown=None)
    await desk.later(100)
    assert desk.condition("Stalled") == ("True", "Cancelled")
    assert len(await desk.runs()) == 1


async def test_stop_lets_running_steps_end(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(shutdown="Stop")
    await desk.settle()
    desk.kubelet.end("a", framed())
    await desk.settle()
    assert await desk.states() == {"a": "Succeeded", "b": "Cancelled"}
    assert desk.condition("Finished") == ("True", "Cancelled")


async def test_a_workflow_that_was_shut_down_before_its_first_run_runs_once_it_may(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(shutdown="Cancel")
    await desk.later(100)
    assert await desk.runs() == []
    assert desk.condition("Stalled") == ("True", "Cancelled")
    desk.edit(shutdown=None)
    await desk.settle()
    assert len(desk.kubelet.pods("a")) == 1


async def failed(desk: Desk) -> None:
    """A Workflow of two steps whose second one failed."""
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    desk.kubelet.start("b")
    desk.kubelet.end("b", framed(code=1))
    await desk.settle()
    assert desk.condition("Stalled") == ("True", "Failed")


async def test_a_retry_takes_over_what_succeeded(desk: Desk) -> None:
    await failed(desk)
    desk.annotate(RETRY, "1")
    await desk.settle()
    assert await desk.states() == {"a": "Succeeded", "b": "Running"}
    desk.kubelet.succeed("b")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert await desk.output("a", "stdout") == "hello"
    assert desk.kubelet.executions == {"a": 1, "b": 2}
    assert [run.number for run in await desk.runs()] == [1, 2]


async def test_a_retry_is_asked_for_by_a_new_value_alone(desk: Desk) -> None:
    await failed(desk)
    desk.annotate(RETRY, "1")
    await desk.settle()
    desk.kubelet.start("b")
    desk.kubelet.end("b", framed(code=1))
    await desk.settle()
    for value in ("1", None):
        desk.annotate(RETRY, value)
        await desk.later(100)
        assert len(await desk.runs()) == 2
    desk.annotate(RETRY, "2")
    await desk.settle()
    assert len(await desk.runs()) == 3


async def test_a_run_that_succeeded_is_not_retried(desk: Desk) -> None:
    await ran(desk)
    desk.annotate(RETRY, "1")
    await desk.later(100)
    assert len(await desk.runs()) == 1


async def test_a_rerun_begins_all_anew_for_each_new_value(desk: Desk) -> None:
    await ran(desk)
    for value, runs in (("1", 2), ("1", 2), (None, 2), ("2", 3)):
        desk.annotate(RERUN, value)
        await desk.settle()
        assert len(await desk.runs()) == runs
        if desk.kubelet.pods("a"):
            desk.kubelet.succeed("a")
            await desk.settle()
        assert desk.condition("Ready") == ("True", "Succeeded")


async def test_a_verb_that_came_with_the_object_asks_for_nothing_more(desk: Desk) -> None:
    await desk.begin()
    desk.apply(WORKFLOWS, "hello", {"steps": A}, annotations={RERUN: "1", RETRY: "1"})
    await desk.settle()
    desk.kubelet.start("a")
    desk.kubelet.end("a", framed(code=1))
    await desk.later(100)
    assert len(await desk.runs()) == 1
