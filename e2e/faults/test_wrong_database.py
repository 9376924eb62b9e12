"""A mistyped DSN: the operator touches nothing until it is corrected."""

import json

import pytest

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.workflow import Applied, shell, workflow

pytestmark = pytest.mark.timeout(300)


def _ready_says(release: Release) -> str:
    """What the operator's readiness endpoint answers."""
    [pod] = release.pods("operator")
    program = (
        "import urllib.request, urllib.error\n"
        "try: print(urllib.request.urlopen('http://127.0.0.1:8080/readyz').read().decode())\n"
        "except urllib.error.HTTPError as error: print(error.read().decode())"
    )
    return release.own("exec", pod["metadata"]["name"], "--", "python", "-I", "-c", program)


def test_nothing_is_touched_while_the_database_is_another_one(
    release: Release, kubectl: Kubectl, namespace: str
) -> None:
    mine = kubectl.within(namespace)
    applied = Applied.of(mine, workflow("long", shell("work", "sleep 5")))
    assert applied.finished()["status"]["run"]["number"] == 1
    name = release.name + "-installation"
    right = release.own.get("configmap", name)["data"]["id"]
    other = "00000000-0000-4000-8000-000000000000"
    try:
        release.own("patch", "configmap", name, "--type=merge", "--patch", json.dumps({"data": {"id": other}}))
        release.own("delete", "pod", release.pods("operator")[0]["metadata"]["name"], "--wait=true")
        said = until(lambda: _said(release), "the operator says that the database is another one")
        assert f"belongs to installation {right}" in said
        Applied.of(mine, workflow("late", shell("work", "true")))
        assert mine.items("pods") == []
    finally:
        release.own("patch", "configmap", name, "--type=merge", "--patch", json.dumps({"data": {"id": right}}))
    assert Applied(mine, "late").finished()["status"]["run"]["state"] == "Succeeded"
    assert applied.object()["status"]["run"]["number"] == 1


def _said(release: Release) -> str | None:
    pods = release.pods("operator")
    if not pods or "running" not in pods[0]["status"].get("containerStatuses", [{"state": {}}])[0]["state"]:
        return None
    said = _ready_says(release)
    return said if "installation" in said else None
