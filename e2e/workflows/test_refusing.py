"""What cannot run is refused: by the API server where the schema can say so, by the status where it cannot."""

from typing import Any

import pytest

from e2e.cluster.clients import Kubectl
from e2e.cluster.errors import ClusterError
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, agent, asks, light, shell, workflow
from pilothouse.api.conditions import check_object
from tests.api.samples import full

KIB = 1024


@pytest.fixture
def mine(release: Release, kubectl: Kubectl, namespace: str) -> Kubectl:
    return kubectl.within(namespace)


def _conditions(kubectl: Kubectl, kind: str, name: str) -> dict[str, dict[str, Any]]:
    """The conditions of an object, once its newest generation was looked at; it keeps the kstatus rules."""

    def seen() -> dict[str, Any] | None:
        found = kubectl.get(kind, name)
        assert check_object(found) == []
        return found if found["status"].get("observedGeneration") == found["metadata"]["generation"] else None

    found = until(seen, f"{kind} {name} was looked at", 60)
    return {each["type"]: each for each in found["status"]["conditions"]}


def _without_namespace(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest, "metadata": {"name": manifest["metadata"]["name"]}}


def test_a_cycle_is_refused_before_any_pod(mine: Kubectl, release: Release) -> None:
    """Also its first step does not run, which could."""
    steps = [shell("first", "true"), shell("a", "true", needs=["b", "first"]), shell("b", "true", needs=["a"])]
    applied = Applied.of(mine, workflow("round", *steps))
    applied.stalled()
    stalled = applied.condition("Stalled")
    assert stalled["reason"] == "InvalidSpec"
    assert stalled["message"].endswith("the steps need each other: a -> b -> a")
    assert Rows(release, mine.namespace or "", "round").runs() == []
    assert mine.items("events", "--field-selector=involvedObject.kind=Pod") == []
    assert applied.pods() == []
    assert applied.condition("Finished") == {}


def test_a_workflow_that_was_mended_runs(mine: Kubectl) -> None:
    applied = Applied.of(mine, workflow("mended", light("a", needs=["b"]), light("b", needs=["a"])))
    applied.stalled()
    mine.apply(workflow("mended", light("a", needs=["b"]), light("b")))
    assert applied.finished()["status"]["run"]["state"] == "Succeeded"
    assert applied.condition("Stalled") == {}


def test_a_field_that_no_step_has_is_refused_by_its_name(mine: Kubectl) -> None:
    with pytest.raises(ClusterError, match=r'unknown field "spec.steps\[0\].retries"'):
        mine.apply(workflow("typo", light("a", retries=3)))
    with pytest.raises(ClusterError, match=r'\.spec\.steps\[name="a"\]\.retries'):
        mine.apply(workflow("typo", light("a", retries=3)), server_side=True)
    with pytest.raises(ClusterError, match="exactly one of"):
        mine.apply(workflow("typo", light("a", wait={"duration": "1s"})))
    assert mine.items("workflows") == []


def test_a_workflow_waits_for_its_agent_and_begins_when_that_appears(mine: Kubectl, release: Release) -> None:
    applied = Applied.of(mine, workflow("patient", asks("ask", "late")))
    conditions = _conditions(mine, "workflow", "patient")
    assert conditions["Ready"]["status"] == "False"
    assert conditions["Reconciling"]["reason"] == "ReferenceNotFound"
    assert "late" in conditions["Reconciling"]["message"]
    assert Rows(release, mine.namespace or "", "patient").runs() == []
    mine.apply(agent("late", {"text": "here I am"}))
    assert applied.finished()["status"]["run"]["state"] == "Succeeded"
    assert _conditions(mine, "agent", "late")["Ready"]["status"] == "True"


def test_a_spec_that_is_too_large_is_refused_and_not_run(mine: Kubectl, release: Release) -> None:
    """Each of its texts is small enough for the schema; client-side apply cannot even send it."""
    code = {"language": "python", "code": "#" * (60 * KIB)}
    mine.apply(workflow("huge", *({"name": f"s{n}", "executeCode": code} for n in range(5))), server_side=True)
    stalled = _conditions(mine, "workflow", "huge")["Stalled"]
    assert stalled["reason"] == "SpecTooLarge"
    assert "256 KiB" in stalled["message"]
    assert Rows(release, mine.namespace or "", "huge").runs() == []


def test_what_is_not_supported_yet_says_so(mine: Kubectl) -> None:
    request = {"name": "get", "httpRequest": {"url": "https://example.com"}}
    pack, approval = _without_namespace(full("Pack")), _without_namespace(full("ToolApproval"))
    mine.apply(workflow("requests", request), workflow("later", light("a"), schedule={"cron": "* * * * *"}))
    mine.apply(pack, approval, server_side=True)
    names = {"pack": pack["metadata"]["name"], "toolapproval": approval["metadata"]["name"]}
    for kind, name in (*names.items(), ("workflow", "requests"), ("workflow", "later")):
        stalled = _conditions(mine, kind, name)["Stalled"]
        assert stalled["reason"] == "NotSupported"
        assert "not supported yet" in stalled["message"]
