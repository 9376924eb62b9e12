"""What can become of a Pod: success needs proof, absence is none, and what never ran may run."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest

from pilothouse.records.sessions import session_of
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import PODS
from pilothouse_operator.operator import SWEEP
from pilothouse_operator.pods import GRACE, STOP
from tests.operator.desk import NAMESPACE, Desk, command, invocation
from tests.operator.kubelet import framed

IMAGE = {"name": "a", "runCommand": {"command": ["./run"], "image": "registry.example.com/app:1"}}


async def begun(desk: Desk, *steps: Mapping[str, Any]) -> Desk:
    """A Workflow whose first Pods are made."""
    await desk.begin()
    desk.workflow(*steps)
    await desk.settle()
    return desk


async def test_a_pod_that_no_node_takes_says_why_and_ends_after_its_pending_timeout(desk: Desk) -> None:
    await begun(desk, command("a", pendingTimeout="5m"))
    desk.kubelet.unschedulable("a", "0/3 nodes are available: 3 Insufficient cpu.")
    await desk.later(1)
    assert desk.message() == "run 1: a waits: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu."
    await desk.later(290)
    assert (await desk.states()) == {"a": "Running"}
    await desk.later(10)
    assert desk.condition("Stalled") == ("True", "Failed")
    assert "F-ENV" in desk.message()
    assert "did not start within 300 seconds: Unschedulable: 0/3 nodes" in desk.message()
    assert desk.kubelet.pods() == []


async def test_an_image_that_cannot_be_pulled_ends_the_pod_where_it_is(desk: Desk) -> None:
    await begun(desk, IMAGE)
    desk.kubelet.bind("a")
    desk.kubelet.waits("a", "ImagePullBackOff", 'Back-off pulling image "registry.example.com/app:1"')
    await desk.later(1)
    assert "a waits: ImagePullBackOff: Back-off pulling image" in desk.message()
    await desk.later(600)
    pod = desk.kubelet.pod("a")
    assert pod["spec"]["activeDeadlineSeconds"] == 1
    assert json.loads(pod["metadata"]["annotations"][STOP])["code"] == "F-ENV"
    desk.kubelet.deadline("a")
    await desk.settle()
    assert desk.condition("Stalled") == ("True", "Failed")
    assert "ImagePullBackOff" in desk.message()


async def test_a_pod_without_its_volumes_says_what_they_need_and_ends_in_its_time(desk: Desk) -> None:
    volumes = [{"name": "keys", "mountPath": "/keys", "secret": {"name": "absent"}}]
    await begun(desk, command("a", pendingTimeout="1m", pod={"volumes": volumes}))
    desk.kubelet.unmounted("a")
    await desk.later(5)
    assert desk.message() == "run 1: a", "every volume takes a moment"
    writes = desk.writes()
    await desk.later(5)
    assert "a waits: its volumes are not mounted yet; they need Secret `absent`" in desk.message()
    assert desk.writes()[len(writes) :] == ["patch status of workflows"]
    await desk.later(50)
    pod = desk.kubelet.pod("a")
    assert json.loads(pod["metadata"]["annotations"][STOP])["code"] == "F-ENV"
    assert "deletionTimestamp" in pod["metadata"], "its kubelet waits for the volume, and hears of nothing else"
    assert await desk.states() == {"a": "Running"}, "it may have started since"
    desk.kubelet.fail("a", "")
    await desk.settle()
    assert await desk.states() == {"a": "Failed"}
    assert "did not start within 60 seconds: its volumes are not mounted yet; they need Secret" in desk.message()
    assert desk.kubelet.executions == {}


async def test_a_pod_that_never_started_is_deleted_where_its_run_is_to_end(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.unmounted("a")
    desk.edit(shutdown="Cancel")
    await desk.settle()
    assert "deletionTimestamp" in desk.kubelet.pod("a")["metadata"]
    desk.kubelet.fail("a", "")
    await desk.settle()
    assert await desk.states() == {"a": "Cancelled"}
    assert desk.condition("Finished") == ("True", "Cancelled")


async def test_what_started_before_its_deletion_arrived_is_an_unknown_outcome(desk: Desk) -> None:
    await begun(desk, command("a", pendingTimeout="1m", retry={"attempts": 3}))
    desk.kubelet.unmounted("a")
    await desk.later(61)
    desk.watching = False
    desk.kubelet.start("a")
    desk.kubelet.vanish("a")
    await desk.later(SWEEP)
    await desk.later(GRACE)
    assert await desk.states() == {"a": "Error"}
    assert desk.condition("Stalled") == ("True", "OutcomeUnknown")
    assert desk.kubelet.executions == {"a": 1}


async def test_a_crash_between_the_reason_and_the_deletion_leaves_nothing_behind(desk: Desk) -> None:
    await begun(desk, command("a", pendingTimeout="1m"))
    desk.kubelet.unmounted("a")
    await desk.end()
    patch = {"metadata": {"annotations": {STOP: "{}"}}}
    await desk.fake.patch(PODS, NAMESPACE, desk.kubelet.pod("a")["metadata"]["name"], patch)
    await desk.begin()
    await desk.later(60)
    assert "deletionTimestamp" in desk.kubelet.pod("a")["metadata"]


async def test_a_pod_that_starts_after_all_no_longer_waits(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.unschedulable("a", "no room")
    await desk.later(1)
    assert "no room" in desk.message()
    desk.kubelet.start("a")
    await desk.later(1)
    assert desk.message() == "run 1: a"
    assert "message" not in desk.object()["status"]["steps"][0]
    await desk.later(1000)
    assert (await desk.states()) == {"a": "Running"}, "the pending timeout is over once it runs"


async def test_a_pod_that_is_taken_while_it_is_to_be_deleted_runs_to_its_stop(desk: Desk) -> None:
    await begun(desk, command("a", pendingTimeout="5m"))
    desk.hold()
    desk.kubelet.bind("a")
    await desk.later(301)
    assert STOP in desk.kubelet.pod("a")["metadata"]["annotations"]
    await desk.deliver()
    desk.kubelet.deadline("a")
    await desk.settle()
    assert "did not start within 300 seconds" in desk.message()


async def test_a_pod_that_starts_at_the_moment_of_its_deletion_runs_on(desk: Desk) -> None:
    class Late:
        """A node takes the Pod between the operator's last look and its deletion."""

        def __getattr__(self, name: str) -> Any:
            return getattr(desk.fake, name)

        async def delete(self, *args: Any) -> bool:
            if "nodeName" not in desk.kubelet.pod("a")["spec"]:
                desk.kubelet.start("a")
            return await desk.fake.delete(*args)

    desk.kube = cast(Kube, Late())
    await begun(desk, command("a", pendingTimeout="5m"))
    await desk.later(300)
    assert "deletionTimestamp" not in desk.kubelet.pod("a")["metadata"]
    assert desk.kubelet.executions == {"a": 1}
    desk.kubelet.end("a", framed())
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")


async def test_a_pod_of_the_same_name_that_no_row_knows_proves_nothing(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    await desk.settle()
    (pod,) = desk.kubelet.pods("a")
    desk.kubelet.vanish("a")
    desk.fake.put(PODS, NAMESPACE, pod)
    desk.kubelet.start("a")
    desk.kubelet.end("a", framed())
    await desk.later(GRACE)
    assert await desk.states() == {"a": "Error"}
    assert desk.condition("Stalled") == ("True", "OutcomeUnknown")


async def test_who_ended_a_pod_is_told_and_nobody_is_said_to_have_cancelled_it(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    full = 'Usage of EmptyDir volume "work" exceeds the limit "1Gi". '
    desk.kubelet.end("a", framed(code=None, signal=15, stopped=True), code=143)
    desk.kubelet.fail("a", "Evicted", full)
    await desk.settle()
    assert [attempt.state.value for attempt in await desk.attempts()] == ["Lost"]
    assert desk.condition("Ready") == ("False", "OutcomeUnknown")
    assert f"its Pod was ended: Evicted: {full.strip()}" in desk.message()


async def test_a_pod_that_vanished_is_an_unknown_outcome_once_its_grace_is_over(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    desk.kubelet.vanish("a")
    await desk.later(GRACE - 2)
    assert (await desk.states()) == {"a": "Running"}
    await desk.later(2)
    assert (await desk.states()) == {"a": "Error"}
    assert desk.condition("Stalled") == ("True", "OutcomeUnknown")
    assert desk.kubelet.executions == {"a": 1}


async def test_a_pod_that_vanished_while_nobody_watched_is_missed_by_the_sweep(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    await desk.settle()
    desk.watching = False
    desk.kubelet.vanish("a")
    await desk.later(SWEEP)
    await desk.later(GRACE)
    assert (await desk.states()) == {"a": "Error"}


async def test_a_pod_that_vanished_while_the_operator_was_away_is_missed_by_the_next(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    await desk.end()
    desk.kubelet.vanish("a")
    await desk.begin()
    await desk.later(GRACE)
    assert (await desk.states()) == {"a": "Error"}


async def test_an_idempotent_command_that_vanished_runs_again(desk: Desk) -> None:
    await begun(desk, command("a", idempotent=True))
    desk.kubelet.start("a")
    desk.kubelet.vanish("a")
    await desk.later(GRACE)
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.kubelet.executions == {"a": 2}
    assert [attempt.number for attempt in await desk.attempts()] == [1, 1]


async def test_an_agent_whose_pod_ended_without_an_outcome_goes_on_in_another(desk: Desk) -> None:
    await desk.begin()
    desk.agent()
    desk.workflow(invocation("ask"))
    await desk.settle()
    desk.kubelet.start("ask")
    desk.kubelet.end("ask", code=0)
    await desk.settle()
    assert [attempt.state.value for attempt in await desk.attempts()] == ["Lost", "Open"]
    assert await desk.states() == {"ask": "Running"}
    desk.kubelet.start("ask")
    await desk.agent_says("ask", text="at last")
    await desk.until(lambda: desk.condition("Ready") == ("True", "Succeeded"))


async def test_an_agent_that_does_not_reach_the_gateway_says_so_until_it_does(desk: Desk) -> None:
    await desk.begin()
    desk.agent()
    desk.workflow(invocation("ask"))
    await desk.settle()
    desk.kubelet.start("ask")
    await desk.later(10)
    assert desk.message() == "run 1: ask"
    await desk.later(10)
    assert "ask waits: the agent has not reached the gateway yet, https://pilothouse-gateway" in desk.message()
    assert "NetworkPolicy" in desk.message()
    attempt = await desk.store.carried(desk.kubelet.pod("ask")["metadata"]["uid"], NAMESPACE)
    await desk.store.attempt_store(attempt.ref).open_session(session_of(attempt.ref.run, attempt.step))
    await desk.later(SWEEP)
    assert desk.message() == "run 1: ask"


async def test_an_agent_that_was_heard_in_time_costs_no_write(desk: Desk) -> None:
    await desk.begin()
    desk.agent()
    desk.workflow(invocation("ask"))
    await desk.settle()
    desk.kubelet.start("ask")
    await desk.later(1)
    attempt = await desk.store.carried(desk.kubelet.pod("ask")["metadata"]["uid"], NAMESPACE)
    await desk.store.attempt_store(attempt.ref).open_session(session_of(attempt.ref.run, attempt.step))
    before = desk.writes()
    await desk.later(100)
    assert desk.writes() == before


async def test_what_never_started_is_started_again_three_times_at_most(desk: Desk) -> None:
    await begun(desk)
    names = set()
    for _ in range(4):
        names.add(desk.kubelet.pod("a")["metadata"]["name"])
        desk.kubelet.bind("a")
        desk.kubelet.fail("a", "OutOfpods", "Node didn't have enough resource: pods")
        await desk.settle()
    assert len(names) == 4
    assert desk.kubelet.pods() == []
    assert await desk.states() == {"a": "Error"}
    assert "enough resource" in desk.message()
    assert desk.kubelet.executions == {}


async def test_a_command_that_took_too_much_memory_fails_with_the_remedy(desk: Desk) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    desk.kubelet.end("a", b"", code=137, reason="OOMKilled")
    await desk.settle()
    assert await desk.states() == {"a": "Failed"}
    assert "F-RES" in desk.message()
    assert "pod.resources.limits.memory" in desk.message()


@pytest.mark.parametrize("states", [True, False], ids=["with states", "without states"])
async def test_an_evicted_command_has_an_unknown_outcome(desk: Desk, states: bool) -> None:
    await begun(desk)
    desk.kubelet.start("a")
    desk.kubelet.fail("a", "Evicted", "The node was low on resource: memory.", states=states)
    await desk.settle()
    assert await desk.states() == {"a": "Error"}
    assert desk.condition("Stalled") == ("True", "OutcomeUnknown")
    assert "Evicted: The node was low on resource: memory." in desk.message()
    assert "idempotent: true" in desk.message()


async def test_a_command_that_somebody_else_ended_is_no_success_and_no_cancellation(desk: Desk) -> None:
    """As `kubectl drain` does: the entry point is asked to end, and tells so."""
    await begun(desk)
    desk.kubelet.start("a")
    await desk.settle()
    pod = desk.kubelet.pod("a")["metadata"]
    await desk.fake.delete(PODS, NAMESPACE, pod["name"], pod["uid"])
    desk.kubelet.end("a", framed("half", code=None, signal=15, stopped=True), code=143)
    await desk.settle()
    assert await desk.states() == {"a": "Error"}
    assert desk.condition("Stalled") == ("True", "OutcomeUnknown")


async def test_a_users_image_gives_its_log_and_its_termination_message(desk: Desk) -> None:
    await begun(desk, IMAGE)
    desk.kubelet.start("a")
    desk.kubelet.end("a", b"one\ntwo\n", message='{"lines": 2}')
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert await desk.output("a", "stdout") == "one\ntwo"
    assert await desk.output("a", "lines") == 2


async def test_a_users_image_is_ended_at_its_timeout(desk: Desk) -> None:
    await begun(desk, {**IMAGE, "timeout": "30s"})
    desk.kubelet.start("a")
    await desk.later(31)
    desk.kubelet.deadline("a", code=143)
    await desk.settle()
    assert await desk.states() == {"a": "Failed"}
    assert "F-TMO" in desk.message()


async def test_a_users_image_that_is_cancelled_is_cancelled_whatever_it_exits_with(desk: Desk) -> None:
    await begun(desk, IMAGE)
    desk.kubelet.start("a")
    desk.edit(shutdown="Cancel")
    await desk.settle()
    desk.kubelet.deadline("a", code=143)
    await desk.settle()
    assert await desk.states() == {"a": "Cancelled"}


async def test_a_step_may_have_the_longest_of_names(desk: Desk) -> None:
    await desk.begin()
    long = "s" + "-" * 61 + "x"
    desk.workflow(command(long), name="w" * 63)
    await desk.settle()
    (pod,) = desk.kubelet.pods()
    assert len(pod["metadata"]["name"]) <= 63
    assert pod["metadata"]["name"].startswith("w" * 24 + "-s-")
