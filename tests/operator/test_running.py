"""A Workflow from its application to its verdict: what runs, what is written, and what is seen."""

from typing import Any

import pytest

from pilothouse.attempts.assignment import Assignment
from pilothouse.records.values import DEPTH_LIMIT
from pilothouse.store.errors import Conflict
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import AGENTS, EVENTS, PACKS, PODS, WORKFLOWS
from tests.api.samples import full
from tests.operator.desk import NAMESPACE, Desk, command, invocation
from tests.operator.kubelet import framed
from tests.operator.strikes import Strike

SIX = [
    "create pods",
    "patch pods",
    "patch status of workflows",
    "delete pods",
    "patch status of workflows",
    "create events",
]


async def test_a_workflow_of_one_step_runs_with_six_writes(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    assert desk.condition("Ready") == ("Unknown", "Progressing")
    assert desk.condition("Reconciling") == ("True", "Progressing")
    assert desk.condition("Finished") == ("False", "Progressing")
    desk.kubelet.start("a")
    await desk.settle()
    desk.kubelet.end("a", framed("hello\n"))
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.condition("Finished") == ("True", "Succeeded")
    assert desk.condition("Reconciling") == desk.condition("Stalled") == ("", "")
    assert await desk.output("a", "stdout") == "hello"
    assert desk.kubelet.pods() == []
    assert desk.events() == [("Normal", "Succeeded")]
    assert desk.writes() == SIX


async def test_watches_that_lag_behind_cost_no_write(desk: Desk) -> None:
    await desk.begin()
    desk.hold()
    desk.workflow()
    for _ in range(12):
        await desk.deliver_one()
        if (pods := desk.kubelet.pods("a")) and not pods[0]["spec"].get("schedulingGates"):
            if pods[0]["status"]["phase"] == "Pending":
                desk.kubelet.start("a")
            elif pods[0]["status"]["phase"] == "Running":
                desk.kubelet.end("a", framed())
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.writes() == SIX


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ([], 0),
        ([{"name": "files", "state": {"terminated": {"exitCode": 0}}}], 0),
        ([{"name": "sandbox", "state": {"running": {}}}], 1),
    ],
)
async def test_a_pod_goes_at_once_when_all_its_containers_have_ended(
    desk: Desk, others: list[dict[str, Any]], left: int
) -> None:
    """A kubelet says that they have before it says it of the Pod, and would take a second more to let it go."""
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    name = desk.kubelet.pod("a")["metadata"]["name"]
    desk.fake.logs[NAMESPACE, name, "main"] = framed()

    def end(pod: Object) -> None:
        pod["status"]["containerStatuses"] = [{"name": "main", "state": {"terminated": {"exitCode": 0}}}]
        pod["status"]["initContainerStatuses"] = others

    desk.fake.change(PODS, NAMESPACE, name, end)
    await desk.settle()
    assert desk.condition("Finished") == ("True", "Succeeded")
    pods = desk.kubelet.pods("a")
    assert ["deletionTimestamp" in pod["metadata"] for pod in pods] == [True] * left


async def test_a_finished_workflow_is_left_alone(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    before = desk.writes()
    for _ in range(3):
        await desk.begin()
        await desk.later(100)
    assert desk.writes() == before


async def test_a_step_reads_what_the_one_before_it_gave(desk: Desk) -> None:
    await desk.begin()
    says = "${{ steps.a.outputs.word }}"
    desk.workflow(
        command("a"),
        {"name": "b", "runCommand": {"command": ["echo", says]}},
        outputs=[{"name": "said", "value": says}],
    )
    await desk.settle()
    assert [pod["metadata"]["labels"]["pilothouse.dev/step"] for pod in desk.kubelet.pods()] == ["a"]
    desk.kubelet.start("a")
    desk.kubelet.end("a", framed(output='{"word": "yes $(HOME)"}'))
    await desk.settle()
    spec = desk.kubelet.pod("b")["metadata"]["annotations"]["pilothouse.dev/spec"]
    assert '"yes $(HOME)"' in spec
    desk.kubelet.succeed("b")
    await desk.settle()
    status = desk.object()["status"]
    assert status["outputs"] == [{"name": "said", "value": "yes $(HOME)"}]
    assert status["run"]["progress"] == "2/2"


async def test_an_agents_own_outcome_is_taken_over_and_its_pod_deleted(desk: Desk) -> None:
    await desk.begin()
    desk.agent()
    desk.workflow(invocation("ask"))
    await desk.settle()
    desk.kubelet.start("ask")
    await desk.agent_says("ask", text="fine")
    await desk.until(lambda: desk.condition("Ready") == ("True", "Succeeded"))
    await desk.settle()
    assert await desk.output("ask", "text") == "fine"
    assert "deletionTimestamp" in desk.kubelet.pod("ask")["metadata"]
    desk.kubelet.end("ask")
    await desk.settle()
    assert desk.kubelet.executions == {"ask": 1}


async def test_an_agent_is_told_whether_it_can_be_run(desk: Desk) -> None:
    await desk.begin()
    desk.agent("good")
    desk.agent("bad", sandbox={"isolation": "Networked"})
    desk.agent("asks", prompt={"systemFrom": {"configMapKeyRef": {"name": "prompts", "key": "p"}}})
    await desk.settle()
    assert desk.condition("Ready", "good", AGENTS) == ("True", "Accepted")
    assert desk.condition("Stalled", "bad", AGENTS) == ("True", "NotSupported")
    assert desk.condition("Reconciling", "asks", AGENTS) == ("True", "ReferenceNotFound")
    desk.config_map("prompts", p="Be brief.")
    await desk.later(10)
    assert desk.condition("Ready", "asks", AGENTS) == ("True", "Accepted")


async def test_an_agent_can_be_run_once_those_that_it_can_ask_can_and_its_pod_is_told_of_them(desk: Desk) -> None:
    await desk.begin()
    desk.agent(tools=[{"agentRef": {"name": "helper"}}])
    desk.workflow(invocation("ask"))
    await desk.settle()
    assert desk.condition("Reconciling", "scribe", AGENTS) == ("True", "ReferenceNotFound")
    assert desk.condition("Ready") == ("False", "ReferenceNotFound")
    desk.agent("helper", prompt={"systemFrom": {"configMapKeyRef": {"name": "prompts", "key": "p"}}})
    desk.config_map("prompts", p="Be brief.")
    await desk.later(10)
    assert desk.condition("Ready", "scribe", AGENTS) == ("True", "Accepted")
    pod = desk.kubelet.pod("ask")
    [digest] = [each["value"] for each in pod["spec"]["containers"][0]["env"] if each["name"] == "PILOTHOUSE_WORK"]
    assignment = Assignment.decode(await desk.store.get_blob(desk.tenant, digest))
    assert assignment.work.agents.keys() == assignment.prompts.keys() == {"helper"}
    assert assignment.prompts["helper"] == "Be brief."


async def test_a_kind_that_is_not_carried_out_yet_says_so(desk: Desk) -> None:
    await desk.begin()
    desk.apply(PACKS, "writing", full("Pack")["spec"])
    await desk.settle()
    assert desk.condition("Stalled", "writing", PACKS) == ("True", "NotSupported")


async def test_a_workflow_waits_for_what_it_refers_to_and_then_begins_within_ten_seconds(desk: Desk) -> None:
    await desk.begin()
    source = {"configMapKeyRef": {"name": "words", "key": "w"}}
    desk.workflow({"name": "a", "runCommand": {"command": ["env"], "env": [{"name": "W", "valueFrom": source}]}})
    await desk.settle()
    assert desk.condition("Ready") == ("False", "ReferenceNotFound")
    assert desk.condition("Finished") == ("", "")
    assert await desk.runs() == []
    desk.config_map("words", w="hush")
    await desk.later(10)
    assert {"name": "W", "value": "hush"} in desk.kubelet.pod("a")["spec"]["containers"][0]["env"]


async def test_a_workflow_begins_as_soon_as_its_agent_is_there(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(invocation("ask"))
    await desk.settle()
    assert desk.condition("Ready") == ("False", "ReferenceNotFound")
    desk.agent()
    await desk.settle()
    assert len(desk.kubelet.pods("ask")) == 1


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (command("a", needs=["b"]), "InvalidSpec"),
        ({"name": "a", "httpRequest": {"url": "https://example.com"}}, "NotSupported"),
    ],
)
async def test_a_workflow_that_cannot_run_stalls_and_says_so_once(
    desk: Desk, step: dict[str, object], reason: str
) -> None:
    await desk.begin()
    desk.workflow(step)
    await desk.settle()
    await desk.later(100)
    assert desk.condition("Stalled") == ("True", reason)
    assert "spec.steps[0]" in desk.message()
    assert await desk.runs() == []
    assert desk.writes() == ["patch status of workflows", "create events"]
    desk.workflow()
    await desk.settle()
    assert desk.condition("Reconciling") == ("True", "Progressing")


async def test_an_edit_that_cannot_run_lets_what_runs_go_on(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    desk.edit(steps=[command("a", needs=["b"])])
    await desk.settle()
    desk.kubelet.end("a", framed())
    await desk.settle()
    assert (await desk.states()) == {"a": "Succeeded"}
    assert desk.condition("Stalled") == ("True", "InvalidSpec")


async def test_a_pod_of_another_installation_is_nobodys_business(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    (pod,) = desk.kubelet.pods("a")
    own = {"installation": "other", "step": "x", "attempt": "other"}
    labels = pod["metadata"]["labels"] | {f"pilothouse.dev/{name}": value for name, value in own.items()}
    metadata = {**pod["metadata"], "name": "foreign", "labels": labels}
    desk.fake.put(PODS, NAMESPACE, {**pod, "metadata": metadata})
    await desk.later(100)
    assert len(desk.kubelet.pods("x")) == 1


async def test_a_write_that_came_too_late_is_looked_at_again_at_once(desk: Desk) -> None:
    """As when an agent ends itself between the read and the write."""
    strike = Strike(error=lambda: Conflict("the attempt has ended"))
    desk.store_given = strike.store(desk.store)
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    strike.number = len(strike.points) + 2  # the log is kept, then the outcome is recorded
    desk.kubelet.end("a", framed())
    await desk.later(0.1)
    assert strike.points.count("commit:StepSucceeded") == 2
    assert desk.condition("Ready") == ("True", "Succeeded")


async def test_a_failed_command_fails_the_run_and_says_why(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    desk.kubelet.end("a", framed(code=3))
    await desk.settle()
    assert desk.condition("Stalled") == ("True", "Failed")
    assert "exit code 3" in desk.message()
    assert await desk.states() == {"a": "Failed", "b": "Omitted"}
    assert desk.events() == [("Warning", "Failed")]
    (event,) = desk.fake.all(EVENTS)
    assert event["involvedObject"]["uid"] == desk.object()["metadata"]["uid"]


async def test_a_failed_step_is_tried_again_in_a_pod_of_another_name(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a", retry={"attempts": 2, "delay": "1ms"}))
    await desk.settle()
    first = desk.kubelet.pod("a")["metadata"]["name"]
    desk.kubelet.start("a")
    desk.kubelet.end("a", framed(code=1))
    await desk.until(lambda: desk.kubelet.pods("a") != [] and desk.kubelet.pod("a")["metadata"]["name"] != first)
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert [attempt.state.value for attempt in await desk.attempts()] == ["Failed", "Succeeded"]


async def test_only_as_many_steps_run_as_parallelism_allows(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b"), command("c"), parallelism=2)
    await desk.settle()
    assert len(desk.kubelet.pods()) == 2
    desk.edit(parallelism=3)
    await desk.settle()
    assert len(desk.kubelet.pods()) == 3
    assert len(await desk.runs()) == 1


async def test_a_user_who_empties_the_status_changes_nothing_that_counts(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    desk.fake.change(WORKFLOWS, NAMESPACE, "hello", lambda obj: obj.update(status={"observedGeneration": -1}))
    await desk.begin()
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert len(await desk.runs()) == 1
    assert desk.kubelet.executions == {"a": 1}


async def test_a_step_that_forges_frames_ends_nothing_but_itself(desk: Desk) -> None:
    await desk.begin()
    deep = "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT
    desk.workflow(command("a"), command("b"), command("c"), failurePolicy="FinishAll")
    await desk.settle()
    for step, log in {
        "a": b'{"out": "\\ud800"}\n' + framed(),
        "b": framed(output=f'{{"deep": {deep}}}'),
        "c": framed(output=f'{{"deep": [[{deep}]]}}'),
    }.items():
        desk.kubelet.start(step)
        desk.kubelet.end(step, log)
    await desk.settle()
    assert await desk.states() == {"a": "Succeeded", "b": "Succeeded", "c": "Failed"}
    assert await desk.output("a", "stdout") == "\ufffdhello"
    assert "step `c` failed: $PILOTHOUSE_OUTPUT cannot be stored: `deep[0]" in desk.message()
