"""Pods that end otherwise than by their program's own end."""

import json

import pytest

from e2e.cluster.clients import Kubectl
from e2e.faults.subject import at_work, subject
from e2e.faults.witness import Witness
from e2e.poll import until
from e2e.release import Release
from e2e.workflow import Applied, shell, workflow

pytestmark = pytest.mark.timeout(300)


def _pod(applied: Applied) -> str:
    """The name of the one Pod of its run, which is at work."""
    at_work(applied, "work")
    [pod] = applied.pods()
    return str(pod["metadata"]["name"])


def _working(kubectl: Kubectl, name: str, **step: object) -> Applied:
    return Applied.of(kubectl, workflow(name, shell("work", "sleep 60", **step)))


@pytest.mark.parametrize("how", ["deleted", "forced", "evicted"])
def test_the_outcome_of_a_pod_that_was_taken_away_is_unknown(
    release: Release, kubectl: Kubectl, namespace: str, how: str
) -> None:
    mine = kubectl.within(namespace)
    applied = _working(mine, how)
    pod = _pod(applied)
    if how == "evicted":
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": namespace}}
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/eviction"
        mine("create", "--raw", path, "--filename=-", stdin=json.dumps(eviction))
    else:
        force = ("--force", "--grace-period=0") if how == "forced" else ()
        mine("delete", "pod", pod, "--wait=false", *force)
    status = applied.finished(150)["status"]
    [step] = status["steps"]
    assert (status["run"]["state"], step["state"], step["attempts"]) == ("Failed", "Error", 1)
    assert applied.condition("Stalled")["reason"] == "OutcomeUnknown"


def test_an_idempotent_step_runs_again_when_its_pod_was_taken_away(
    release: Release, kubectl: Kubectl, namespace: str
) -> None:
    mine = kubectl.within(namespace)
    manifest = workflow("again", shell("work", "sleep 8", idempotent=True))
    applied = Applied.of(mine, manifest)
    mine("delete", "pod", _pod(applied), "--force", "--grace-period=0", "--wait=false")
    assert applied.finished(150)["status"]["run"]["state"] == "Succeeded"


def test_a_pod_out_of_memory_fails_its_step(release: Release, kubectl: Kubectl, namespace: str) -> None:
    eater = "import sys; x = []\nwhile True: x.append(bytearray(1 << 20))"
    step = {
        "name": "eat",
        "runCommand": {"command": ["python", "-c", eater]},
        "pod": {"resources": {"limits": {"memory": "48Mi"}}},
    }
    applied = Applied.of(kubectl.within(namespace), workflow("eats", step))
    status = applied.finished()["status"]
    assert status["run"]["state"] == "Failed"
    assert status["steps"][0]["code"] in ("F-RES", "F-EXE")


def test_an_image_that_is_missing_fails_the_step_with_its_reason(
    release: Release, kubectl: Kubectl, namespace: str
) -> None:
    step = {
        "name": "pull",
        "runCommand": {"image": "example.invalid/none:1", "command": ["true"]},
        "pendingTimeout": "15s",
    }
    applied = Applied.of(kubectl.within(namespace), workflow("pulls", step))
    waits = until(lambda: applied.steps().get("pull", {}).get("message"), "the status says what the Pod waits for")
    assert "Image" in waits
    status = applied.finished()["status"]
    assert (status["steps"][0]["state"], status["steps"][0]["code"]) == ("Failed", "F-ENV")
    assert "did not start within 15 seconds" in status["steps"][0]["message"]
    assert all("deletionTimestamp" in pod["metadata"] for pod in applied.pods())


def test_a_run_waits_while_the_database_is_away(
    release: Release, kubectl: Kubectl, namespace: str, our_image: str
) -> None:
    applied = subject(kubectl.within(namespace), our_image)
    at_work(applied, "ours")
    release.own("scale", "statefulset/pilothouse-postgres", "--replicas=0")
    try:
        kubectl.within(namespace).wait(
            "jsonpath={.status.conditions[?(@.type=='Ready')].reason}=StoreUnavailable", "workflow/struck", seconds=60
        )
        assert applied.condition("Ready")["status"] == "Unknown"
    finally:
        release.own("scale", "statefulset/pilothouse-postgres", "--replicas=1")
    assert applied.finished(180)["status"]["run"]["state"] == "Succeeded"
    assert set(Witness(applied.kubectl, our_image).heard().values()) == {1}
