"""Workflows that are deleted, with and without an operator that sees it, and created anew under the same name."""

from dataclasses import replace

from pilothouse.store.ports import RunStore
from pilothouse_operator.kube.resources import NAMESPACES, PODS, WORKFLOWS, Resource
from pilothouse_operator.pods import GRACE
from tests.operator.desk import NAMESPACE, SETTINGS, Desk, command
from tests.operator.kubelet import framed
from tests.store.samples import new_run


async def test_a_deletion_cancels_the_run_and_leaves_nothing_open(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    desk.delete()
    await desk.settle()
    assert [run.state.value for run in await desk.runs()] == ["Running"], "its Pod has yet to end"
    desk.kubelet.end("a", framed(code=None, signal=15, stopped=True), code=143)
    await desk.settle()
    desk.kubelet.vanish("a")
    await desk.settle()
    (run,) = await desk.runs()
    assert run.state.value == "Cancelled"
    assert [attempt.state.final for attempt in await desk.attempts()] == [True]


async def test_a_deletion_of_what_waits_for_a_node_ends_at_once(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.delete()
    await desk.later(GRACE)
    (run,) = await desk.runs()
    assert run.state.value == "Cancelled"
    assert desk.kubelet.pods() == []


async def test_a_deletion_that_nobody_saw_is_found_by_the_next_operator(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    await desk.end()
    desk.delete()
    await desk.begin()
    await desk.later(GRACE)
    (run,) = await desk.runs()
    assert run.state.value == "Cancelled"


async def test_a_deletion_that_the_watch_missed_is_found_by_the_sweep(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.watching = False
    desk.delete()
    await desk.later(30)
    await desk.later(GRACE)
    (run,) = await desk.runs()
    assert run.state.value == "Cancelled"


async def test_a_workflow_that_is_created_anew_runs_anew_and_the_old_run_ends(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    old = desk.kubelet.pod("a")["metadata"]["name"]
    desk.delete()
    desk.workflow()
    await desk.settle()
    desk.fake.remove(PODS, NAMESPACE, old)
    await desk.later(GRACE)
    desk.kubelet.succeed("a")
    await desk.settle()
    runs = await desk.runs()
    assert [run.state.value for run in runs] == ["Cancelled", "Succeeded"]
    assert runs[0].workflow_uid != runs[1].workflow_uid
    status = desk.object()["status"]
    assert status["run"]["number"] == 2
    assert status["run"]["state"] == "Succeeded"


async def test_a_status_is_never_written_to_the_next_object_of_that_name(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.hold()
    desk.delete()
    desk.workflow(suspend=True)
    desk.operator.queue.add(desk.key())
    await desk.later(2)
    assert desk.object()["status"] == {"observedGeneration": -1}
    await desk.deliver()
    assert desk.condition("Ready") == ("Unknown", "SuspendedByUser")


async def test_a_run_whose_namespace_is_gone_is_cancelled(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    desk.fake.remove_namespace(NAMESPACE)
    await desk.later(GRACE)
    (run,) = await desk.runs()
    assert run.state.value == "Cancelled"
    assert [attempt.state.final for attempt in await desk.attempts()] == [True]


async def test_a_namespace_that_is_created_anew_is_another_tenant(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.succeed("a")
    await desk.settle()
    desk.fake.remove_namespace(NAMESPACE)
    desk.fake.add_namespace(NAMESPACE)
    desk.workflow()
    await desk.settle()
    first, second = await desk.runs()
    assert first.ref.tenant != second.ref.tenant
    assert (first.number, second.number) == (1, 1)


async def test_a_run_is_ended_however_many_others_have_the_same_name(desk: Desk, store: RunStore) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    for number in range(101):
        await store.create_run(new_run(namespace=f"team-{number}", workflow="hello"))
    desk.delete()
    await desk.later(GRACE)
    (run,) = [run for run in await store.runs(workflow="hello", limit=200) if run.namespace == NAMESPACE]
    assert run.state.value == "Cancelled"


async def test_a_run_of_a_namespace_that_is_served_no_more_is_left_alone_until_it_is_again(desk: Desk) -> None:
    """The operator has no rights there, so it can tell nothing of its objects."""
    await desk.begin()
    desk.workflow()
    await desk.settle()
    await desk.end()
    desk.delete()
    reads = len(desk.fake.reads)

    def serve_others() -> None:
        desk.operator.settings = replace(SETTINGS, namespaces=("team-b",))

    await desk.begin(prepare=serve_others)
    await desk.later(100)
    assert "get workflows" not in desk.fake.reads[reads:]
    assert [(run.state.value, run.shutdown) for run in await desk.runs()] == [("Running", None)]
    await desk.begin()
    await desk.later(GRACE)
    assert [run.state.value for run in await desk.runs()] == ["Cancelled"]


def mark(desk: Desk, resource: Resource, name: str, namespace: str = NAMESPACE) -> None:
    """It is being deleted, and something keeps it there."""
    desk.fake.change(
        resource, namespace, name, lambda obj: obj["metadata"].update(deletionTimestamp=desk.fake._moment())
    )


async def test_a_deleted_workflow_that_a_finalizer_holds_says_how_its_run_ended(desk: Desk) -> None:
    await desk.begin()
    desk.workflow(command("a"), command("b", needs=["a"]))
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    mark(desk, WORKFLOWS, "hello")
    await desk.settle()
    desk.kubelet.deadline("a")
    await desk.later(1)
    assert await desk.states() == {"a": "Cancelled", "b": "Cancelled"}
    assert desk.object()["status"]["run"]["state"] == "Cancelled"
    assert desk.condition("Finished") == ("True", "Cancelled")
    assert desk.kubelet.pods() == []


async def test_a_run_whose_namespace_is_being_deleted_is_cancelled(desk: Desk) -> None:
    await desk.begin()
    desk.workflow()
    await desk.settle()
    desk.kubelet.start("a")
    await desk.settle()
    desk.fake.admission.terminating.add(NAMESPACE)
    mark(desk, NAMESPACES, NAMESPACE, "")
    desk.kubelet.end("a", framed(code=None, signal=15, stopped=True), code=143)
    await desk.settle()
    assert [run.state.value for run in await desk.runs()] == ["Cancelled"]
    assert await desk.states() == {"a": "Cancelled"}
    assert desk.object()["status"]["run"]["state"] == "Cancelled"
