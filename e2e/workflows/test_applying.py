"""What starts a run, and what does not: applying, editing and reconciling as Argo CD and Flux do."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, light, shell, workflow

DEFINITION = "customresourcedefinition/workflows.pilothouse.dev"
STEP = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/steps/items/properties"


@pytest.fixture(scope="module")
def mine(release: Release, kubectl: Kubectl, shared_namespace: str) -> Kubectl:
    return kubectl.within(shared_namespace)


def _numbers(release: Release, applied: Applied) -> list[int]:
    return [run.number for run in Rows(release, applied.kubectl.namespace or "", applied.name).runs()]


def _version(applied: Applied) -> str:
    version: str = applied.object()["metadata"]["resourceVersion"]
    return version


def test_applying_the_same_again_changes_nothing(mine: Kubectl, release: Release) -> None:
    manifest = workflow("again", light("a"), light("b", {"list": [1, 1.0, None]}, needs=["a"]))
    applied = Applied.of(mine, manifest)
    applied.finished()
    before = _version(applied)
    assert mine.apply(manifest) == "workflow.pilothouse.dev/again unchanged\n"
    assert _version(applied) == before
    assert applied.nudged()["status"]["run"]["number"] == 1
    assert _numbers(release, applied) == [1]


def test_another_manager_applies_the_same_on_the_server_and_nothing_runs(mine: Kubectl, release: Release) -> None:
    manifest = workflow("managed", light("a"), light("b", needs=["a"]))
    applied = Applied.of(mine, manifest)
    applied.finished()
    generation = applied.object()["metadata"]["generation"]
    for manager in ("flux", "argocd"):
        arguments = ("apply", "--server-side", f"--field-manager={manager}", "--filename=-")
        mine(*arguments, stdin=json.dumps(manifest))
        after = _version(applied)
        mine(*arguments, stdin=json.dumps(manifest))
        assert _version(applied) == after
    assert applied.object()["metadata"]["generation"] == generation
    assert applied.nudged()["status"]["run"]["number"] == 1
    assert _numbers(release, applied) == [1]


def test_labels_and_annotations_start_nothing(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("labelled", light("a")))
    applied.finished()
    mine("label", "workflow", "labelled", "team=a", "app.kubernetes.io/instance=argo")
    mine("annotate", "workflow", "labelled", "example.com/note=read", "kubectl.kubernetes.io/restartedAt=now")
    assert applied.nudged()["status"]["run"]["number"] == 1
    assert _numbers(release, applied) == [1]


def test_an_edit_runs_and_going_back_runs_again(mine: Kubectl, release: Release) -> None:
    """A -> B -> A are three runs: only the latest one is compared with."""
    one, other = workflow("swinging", light("a", "A")), workflow("swinging", light("a", "B"))
    applied = Applied.of(mine, one)
    applied.finished()
    for number, manifest in ((2, other), (3, one)):
        mine.apply(manifest)
        mine.wait(f"jsonpath={{.status.run.number}}={number}", "workflow/swinging")
        assert applied.finished()["status"]["run"]["number"] == number
    runs = Rows(release, mine.namespace or "", "swinging").runs()
    assert [(run.number, run.state) for run in runs] == [(n, "Succeeded") for n in (1, 2, 3)]
    assert runs[0].key == runs[2].key != runs[1].key


def test_an_edit_ends_the_run_that_is_under_way_before_the_next_begins(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("replaced", shell("sleeps", "sleep 600")))
    until(lambda: [pod for pod in applied.pods() if pod["status"]["phase"] == "Running"], "the step's Pod runs")
    mine.apply(workflow("replaced", light("quick")))
    mine.wait("jsonpath={.status.run.number}=2", "workflow/replaced")
    assert applied.finished()["status"]["run"]["state"] == "Succeeded"
    rows = Rows(release, mine.namespace or "", "replaced")
    assert [run.state for run in rows.runs()] == ["Cancelled", "Succeeded"]
    query = "SELECT count(*) FROM runs AS a, runs AS b WHERE a.number = 1 AND b.number = 2 AND a.tenant = b.tenant "
    query += "AND a.workflow = %s AND b.workflow = %s AND a.namespace = %s AND a.finished_at <= b.created_at"
    assert release.sql(query, "replaced", "replaced", mine.namespace or "") == [["1"]]
    until(lambda: not applied.pods(), "its Pods are gone", 60)


@pytest.mark.parametrize("server_side", [False, True], ids=["client-side", "server-side"])
def test_a_default_that_the_schema_gets_later_starts_nothing(
    mine: Kubectl, release: Release, kubectl: Kubectl, server_side: bool
) -> None:
    """As a later release may bring one: the object reads differently then, and nobody has changed it."""

    def manifest(timeout: str) -> dict[str, Any]:
        value = {"nothing": None, "deep": {"er": [1]}}
        return workflow(f"defaulted-{server_side}".lower(), light("a", value), shell("b", "true", timeout=timeout))

    mine.apply(manifest("2m"), server_side=server_side)
    applied = Applied(mine, manifest("2m")["metadata"]["name"])
    applied.finished()
    with _default(kubectl, f"{STEP}/pendingTimeout", "1h"), _default(kubectl, f"{STEP}/idempotent", False):
        until(lambda: _read(applied, "idempotent") == [False, False], "the server gives the defaults", 30)
        assert _read(applied, "pendingTimeout") == ["1h", "1h"]
        assert applied.nudged()["status"]["run"]["number"] == 1
        mine("label", "workflow", applied.name, "team=a")
        mine.apply(manifest("2m"), server_side=server_side)
        assert applied.nudged()["status"]["run"]["number"] == 1
        mine.apply(manifest("3m"), server_side=server_side)
        mine.wait("jsonpath={.status.run.number}=2", f"workflow/{applied.name}")
        assert applied.finished()["status"]["run"]["state"] == "Succeeded"
    assert applied.nudged()["status"]["run"]["number"] == 2
    assert _numbers(release, applied) == [1, 2]


def _read(applied: Applied, field: str) -> list[Any]:
    return [step.get(field) for step in applied.object()["spec"]["steps"]]


@contextmanager
def _default(kubectl: Kubectl, path: str, value: Any) -> Iterator[None]:
    """Lets the server give a field of the schema a default, for a while."""

    def patch(*operations: dict[str, Any]) -> None:
        kubectl("patch", DEFINITION, "--type=json", "--patch", json.dumps(operations))

    patch({"op": "add", "path": f"{path}/default", "value": value})
    try:
        yield
    finally:
        patch({"op": "remove", "path": f"{path}/default"})
