"""A namespace is a tenant: nothing of it is seen from another one, nor from one that has its name later."""

from collections.abc import Iterator

import pytest

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, light, shell, workflow


@pytest.fixture
def away(release: Release) -> Iterator[Release]:
    """The release; its operator comes back when the test is over."""
    yield release
    release.scale("operator", 1)


def _texts(text: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "texts"}, "data": {"text": text}}


def _prints(name: str) -> dict[str, object]:
    value = {"valueFrom": {"configMapKeyRef": {"name": "texts", "key": "text"}}}
    step = {
        "name": "print",
        "runCommand": {"command": ["sh", "-c", 'echo "$TEXT"'], "env": [{"name": "TEXT", **value}]},
    }
    return workflow(name, step, outputs=[{"name": "text", "value": "${{ steps.print.outputs.stdout }}"}])


def test_two_workflows_of_one_name_do_not_see_each_other(
    release: Release, kubectl: Kubectl, namespace: str, shared_namespace: str
) -> None:
    """The second one names what only the first one's namespace has, until that has a text of its own."""
    one, other = kubectl.within(namespace), kubectl.within(shared_namespace)
    one.apply(_texts("one"))
    applied = [Applied.of(mine, _prints("twin")) for mine in (one, other)]
    assert applied[0].finished()["status"]["run"]["state"] == "Succeeded"
    waiting = applied[1].seen()
    assert waiting["status"].get("run") is None
    assert applied[1].condition("Reconciling")["reason"] == "ReferenceNotFound"
    other.apply(_texts("other"))
    assert applied[1].finished()["status"]["run"]["number"] == 1
    assert [each.outputs()["text"] for each in applied] == ["one", "other"]
    query = "SELECT count(DISTINCT tenant), count(*) FROM runs WHERE workflow = 'twin' AND namespace IN (%s, %s)"
    assert release.sql(query, namespace, shared_namespace) == [["2", "2"]]
    one("delete", "workflow", "twin", "--timeout=20s")
    assert applied[1].nudged()["status"]["run"]["state"] == "Succeeded"


def test_a_namespace_goes_and_comes_back_while_the_operator_is_away(
    away: Release, kubectl: Kubectl, namespace: str
) -> None:
    """It deletes without help, and the new one of its name is another tenant, whose runs begin at one."""
    mine = kubectl.within(namespace)
    manifest = workflow("resident", shell("sleeps", "sleep 600"))
    applied = Applied.of(mine, manifest)
    until(lambda: [pod for pod in applied.pods() if pod["status"]["phase"] == "Running"], "the step runs")
    away.scale("operator", 0)
    kubectl("delete", "namespace", namespace, "--timeout=90s", timeout=100)
    kubectl("create", "namespace", namespace)
    mine.wait("create", "serviceaccount/default")
    mine.apply(workflow("resident", light("quick")))
    away.scale("operator", 1)
    status = applied.finished()["status"]
    assert (status["run"]["number"], status["run"]["state"]) == (1, "Succeeded")
    rows = Rows(away, namespace, "resident")
    until(lambda: [run.state for run in rows.runs()] == ["Cancelled", "Succeeded"], "the old run is cancelled", 60)
    assert [run.number for run in rows.runs()] == [1, 1]
