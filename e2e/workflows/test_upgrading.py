"""Upgrades and uninstalls of the chart while workflows run."""

from collections.abc import Iterator

import pytest

from e2e.cluster.clients import Kubectl
from e2e.cluster.errors import ClusterError
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, agent, asks, shell, workflow

WAITS = "while [ ! -e go ]; do sleep 0.2; done"
"""A command that ends once somebody makes the file `go` beside it."""

OTHER = ("crds.enabled=false", "rbac.userRoles.create=false")
"""Values of a second release in a cluster, as the chart says."""

EVERYTHING = "all,configmaps,secrets,persistentvolumeclaims,serviceaccounts,roles,rolebindings,networkpolicies"

LEFT = [
    "configmap/second-installation",
    "secret/second-gateway-tls",
    "persistentvolumeclaim/data-second-postgres-0",
]
"""What an uninstall leaves: the data, the id that goes with them, and what agents know the gateway by."""


@pytest.fixture
def upgraded(release: Release) -> Iterator[Release]:
    """The release; it is as it was when the test is over."""
    yield release
    release.install()


def _working(applied: Applied) -> dict[str, str]:
    """The UIDs of Pods whose containers all run, by their step."""
    found = {}
    for pod in applied.pods():
        statuses = pod["status"].get("containerStatuses", [])
        if statuses and all(status["ready"] for status in statuses):
            found[pod["metadata"]["labels"]["pilothouse.dev/step"]] = pod["metadata"]["uid"]
    return found


def _let_go(applied: Applied) -> None:
    for pod in applied.pods():
        container = "sandbox" if pod["metadata"]["labels"]["pilothouse.dev/role"] == "agent" else "main"
        applied.kubectl("exec", pod["metadata"]["name"], f"--container={container}", "--", "touch", "/workspace/go")


def _left(kubectl: Kubectl, kinds: str) -> list[str]:
    """What there is of the second release."""
    return kubectl("get", kinds, "--selector=app.kubernetes.io/instance=second", "--output=name").split()


def _uids(release: Release, component: str) -> set[str]:
    """Of the Pods that are there to stay."""
    pods = (pod["metadata"] for pod in release.pods(component))
    return {metadata["uid"] for metadata in pods if "deletionTimestamp" not in metadata}


def _wait_for_others(release: Release, component: str, than: set[str]) -> None:
    until(lambda: not _uids(release, component) & than, f"the {component} is a new one")


def test_a_run_goes_on_through_an_upgrade_and_repeats_nothing(
    upgraded: Release, kubectl: Kubectl, namespace: str
) -> None:
    mine = kubectl.within(namespace)
    call = {"name": "shell", "arguments": {"command": WAITS}}
    mine.apply(agent("waiter", {"toolCalls": [call]}, {"text": "done"}, tools=[{"builtin": "shell"}]))
    steps = [shell("command", WAITS), asks("agent", "waiter"), shell("after", "true", needs=["command", "agent"])]
    applied = Applied.of(mine, workflow("upgraded", *steps))
    before = until(lambda: found if len(found := _working(applied)) == 2 else None, "both steps work")
    replaced = {component: _uids(upgraded, component) for component in ("operator", "gateway")}
    upgraded.install("operator.resources.limits.memory=500Mi", "gateway.resources.limits.memory=500Mi")
    for component, pods in replaced.items():
        _wait_for_others(upgraded, component, pods)
    assert _working(applied) == before
    _let_go(applied)
    assert applied.finished()["status"]["run"]["state"] == "Succeeded"
    attempts = Rows(upgraded, namespace, "upgraded").attempts()
    assert {(attempt.path, attempt.number, attempt.state) for attempt in attempts} == {
        (step, 1, "Succeeded") for step in ("command", "agent", "after")
    }
    assert {attempt.path: attempt.carrier for attempt in attempts if attempt.path in before} == before


@pytest.mark.parametrize(
    ("value", "refusal"),
    [
        ("postgres.bundled.storage.size=2Gi", "set it to 1Gi as it was"),
        ("postgres.bundled.storage.className=other", 'set it to "" as it was'),
        ("postgres.bundled.persistence=false", "set it to true as it was"),
    ],
)
def test_another_volume_than_the_one_there_is_refused_before_anything_changes(
    release: Release, value: str, refusal: str
) -> None:
    release.settle()
    before = [_uids(release, component) for component in ("postgres", "operator", "gateway")]
    with pytest.raises(ClusterError, match=refusal):
        release.install("operator.resources.limits.memory=500Mi", value)
    assert [_uids(release, component) for component in ("postgres", "operator", "gateway")] == before


def test_another_release_comes_and_goes_and_leaves_this_one_alone(
    upgraded: Release, kubectl: Kubectl, namespace: str, shared_namespace: str, our_image: str
) -> None:
    """It serves another namespace, and is refused where it would serve the same."""
    release = upgraded
    second = Release(release.helm, kubectl, our_image, "second", namespace)
    with pytest.raises(ClusterError, match='all namespaces are served already by the release "pilothouse"'):
        second.install(*OTHER)
    release.install(f"namespaces.served={{{shared_namespace}}}")
    with pytest.raises(ClusterError, match=f'namespace "{shared_namespace}" is served already by the release'):
        second.install(*OTHER, f"namespaces.served={{default,{shared_namespace}}}")
    applied = Applied.of(kubectl.within(shared_namespace), workflow("steady", shell("command", WAITS)))
    before = until(lambda: _working(applied) or None, "the step works")
    [ours] = release.sql("SELECT id::text FROM installation")
    second.install(*OTHER, "namespaces.served={default}")
    assert second.sql("SELECT (SELECT count(*) FROM runs), id <> %s FROM installation", *ours) == [["0", "True"]]
    second.uninstall()
    until(lambda: _left(kubectl.within(namespace), EVERYTHING) == LEFT, "all but its data are gone", 60)
    assert _left(kubectl, "clusterroles,clusterrolebindings") == []
    assert _working(applied) == before
    [pod] = applied.pods()
    assert pod["metadata"]["labels"]["pilothouse.dev/installation"] == ours[0]
    _let_go(applied)
    status = applied.finished()["status"]
    assert (status["run"]["number"], status["run"]["state"]) == (1, "Succeeded")
