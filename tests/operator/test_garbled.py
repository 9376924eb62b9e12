"""Pods whose labels, annotations and owners somebody changed: what is decided stands in rows and in what nobody can
change."""

import json
from typing import Any

import pytest

from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import PODS, WORKFLOWS
from pilothouse_operator.names import ATTEMPT, INSTALLATION, MANAGED_BY, ROLE, RUN, STEP, WORKFLOW
from pilothouse_operator.operator import SWEEP
from pilothouse_operator.pods import STOP
from tests.operator.desk import NAMESPACE, Desk, command, invocation
from tests.operator.kubelet import framed

OTHER = {"apiVersion": "v1", "kind": "Workflow", "name": "other", "uid": "00000000-0000-4000-8000-00000000000f"}
FORGED = json.dumps({"code": "F-SEC", "message": "forged"})
LABELS = [MANAGED_BY, INSTALLATION, WORKFLOW, RUN, STEP, ATTEMPT, ROLE]
GARBLED: dict[str, dict[str, Any]] = {
    **{f"no label {name}": {"labels": {name: None}} for name in LABELS},
    **{f"another {name}": {"labels": {name: "another"}} for name in LABELS},
    **{f"{STOP} is {text[:9]}": {"annotations": {STOP: text}} for text in ("garbage", "[]", '{"code": 1}', FORGED)},
    "no labels": {"labels": None},
    "no annotations": {"annotations": None},
    "no owner": {"ownerReferences": None},
    "another owner": {"ownerReferences": [OTHER]},
}
garblings = pytest.mark.parametrize("change", GARBLED.values(), ids=GARBLED)


def garble(desk: Desk, step: str, change: dict[str, Any]) -> None:
    """`kubectl patch`, by whoever may patch Pods."""

    def edit(pod: Object) -> None:
        metadata = pod["metadata"]
        for name, value in change.items():
            merged = {**metadata.get(name, {}), **value} if isinstance(value, dict) else value
            kept = {k: v for k, v in merged.items() if v is not None} if isinstance(merged, dict) else merged
            metadata.pop(name, None)
            if kept is not None:
                metadata[name] = kept

    desk.fake.change(PODS, NAMESPACE, desk.kubelet.pod(step)["metadata"]["name"], edit)


async def begun(desk: Desk, *steps: Any) -> None:
    await desk.begin()
    desk.workflow(*steps)
    await desk.settle()
    for step in steps:
        desk.kubelet.start(step["name"])
    await desk.settle()


IMAGE = {"name": "a", "runCommand": {"command": ["./run"], "image": "registry.example.com/app:1"}, "timeout": "2m"}


@garblings
async def test_a_garbled_pod_is_read_as_what_it_is(desk: Desk, change: dict[str, Any]) -> None:
    await begun(desk, command("a"), {**IMAGE, "name": "b"})
    for step, log in {"a": framed("so\n"), "b": b"so\n"}.items():
        garble(desk, step, change)
        await desk.settle()
        assert (await desk.states())[step] == "Running"
        desk.kubelet.end(step, log)
    await desk.later(SWEEP)
    assert await desk.states() == {"a": "Succeeded", "b": "Succeeded"}
    assert [await desk.output(step, "stdout") for step in "ab"] == ["so", "so"]
    assert desk.condition("Ready") == ("True", "Succeeded")
    assert desk.kubelet.pods() == []


@garblings
async def test_a_run_with_a_garbled_pod_can_be_shut_down(desk: Desk, change: dict[str, Any]) -> None:
    await begun(desk, command("a"))
    garble(desk, "a", change)
    await desk.settle()
    desk.edit(shutdown="Cancel")
    await desk.settle()
    garble(desk, "a", change)
    desk.kubelet.deadline("a")
    await desk.later(SWEEP)
    assert [run.state.value for run in await desk.runs()] == ["Cancelled"]
    assert desk.kubelet.pods() == []


@garblings
async def test_the_limits_of_a_garbled_pod_stand(desk: Desk, change: dict[str, Any]) -> None:
    await begun(desk, IMAGE)
    garble(desk, "a", change)
    await desk.later(100)
    assert not stopped(desk)
    await desk.later(30)
    assert stopped(desk)
    desk.kubelet.deadline("a")
    await desk.later(SWEEP)
    assert desk.condition("Ready") == ("False", "Failed")
    assert "the command reached the step's timeout" in desk.message()


def stopped(desk: Desk) -> bool:
    return bool(desk.kubelet.pod("a")["spec"].get("activeDeadlineSeconds") == 1)


async def test_an_agents_garbled_pod_is_an_agents(desk: Desk) -> None:
    desk.agent()
    await begun(desk, invocation("a"))
    garble(desk, "a", {"labels": {ROLE: "command"}})
    await desk.agent_says("a", answer="so")
    await desk.later(SWEEP)  # what the store tells of it may come after all else is settled
    assert await desk.states() == {"a": "Succeeded"}


@pytest.mark.parametrize("note", ["garbage", "[]", "7", "{}", '{"code": "F-SEC"}', '{"code": 1, "message": 2}', None])
async def test_a_garbled_note_of_why_a_pod_was_stopped_is_no_reason(desk: Desk, note: str | None) -> None:
    await begun(desk, IMAGE)
    await desk.later(121)
    assert stopped(desk)
    garble(desk, "a", {"annotations": {STOP: note}})
    desk.kubelet.deadline("a")
    await desk.settle()
    assert await desk.states() == {"a": "Error"}
    assert desk.condition("Ready") == ("False", "OutcomeUnknown")


async def test_a_workflow_that_is_deleted_without_its_pods_ends_and_they_go(desk: Desk) -> None:
    await begun(desk, command("a"))
    garble(desk, "a", {"ownerReferences": None})
    desk.fake.remove(WORKFLOWS, NAMESPACE, "hello")
    await desk.settle()
    desk.kubelet.deadline("a")
    await desk.later(SWEEP)
    assert [run.state.value for run in await desk.runs()] == ["Cancelled"]
    assert desk.kubelet.pods() == []


async def test_a_pod_of_a_crash_is_told_from_one_in_use_by_its_name(desk: Desk) -> None:
    await begun(desk, command("a"))
    for change in GARBLED.values():
        garble(desk, "a", change)
    await desk.begin()
    await desk.later(SWEEP)
    desk.kubelet.end("a", framed())
    await desk.later(SWEEP)
    assert await desk.states() == {"a": "Succeeded"}
