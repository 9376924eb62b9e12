"""What becomes of runs whose Workflow, or whose namespace, is deleted."""

from typing import Any

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, agent, asks, light, shell, workflow

OURS = "--selector=app.kubernetes.io/managed-by=pilothouse"


def _running(kubectl: Kubectl) -> list[dict[str, Any]]:
    """The Pods of steps whose containers all run."""
    pods = kubectl.items("pods", OURS)
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def test_a_deleted_workflow_leaves_no_pods_and_its_run_is_cancelled(
    release: Release, kubectl: Kubectl, namespace: str, our_image: str
) -> None:
    """A step of each kind that has a Pod, and one whose Pod no node takes."""
    mine = kubectl.within(namespace)
    call = {"name": "shell", "arguments": {"command": "sleep 600"}}
    sleeps = {"command": ["sleep", "600"], "image": our_image}
    steps = [
        shell("ours", "sleep 600"),
        {"name": "theirs", "runCommand": sleeps},
        asks("agent", "sleeper"),
        shell("pending", "true", pod={"nodeSelector": {"no": "node"}}),
    ]
    mine.apply(agent("sleeper", {"toolCalls": [call]}, {"text": "done"}, tools=[{"builtin": "shell"}]))
    applied = Applied.of(mine, workflow("doomed", *steps))
    until(lambda: len(_running(mine)) == 3, "three Pods run")
    until(lambda: "nodes are available" in applied.steps()["pending"].get("message", ""), "the fourth one waits")
    mine("delete", "workflow", "doomed", "--timeout=20s")
    until(lambda: not mine.items("pods"), "its Pods are gone", 60)
    rows = Rows(release, namespace, "doomed")
    until(lambda: [run.state for run in rows.runs()] == ["Cancelled"], "its run is cancelled", 60)
    states = {attempt.state for attempt in rows.attempts()}
    assert states
    assert not states & {"Open", "Succeeded"}


def test_a_workflow_that_is_made_anew_under_its_name_has_a_run_of_its_own(
    release: Release, kubectl: Kubectl, namespace: str
) -> None:
    mine = kubectl.within(namespace)
    manifest = workflow("phoenix", light("a"))
    Applied.of(mine, manifest).finished()
    mine("delete", "workflow", "phoenix", "--timeout=20s")
    assert Applied.of(mine, manifest).finished()["status"]["run"]["number"] == 2
    assert [run.state for run in Rows(release, namespace, "phoenix").runs()] == ["Succeeded", "Succeeded"]
