"""Processes killed with -9 in the middle of each kind of step: nothing is lost, and nothing is done twice."""

import time
from collections.abc import Callable

import pytest

from e2e.cluster.clients import Kubectl
from e2e.cluster.clusters import Cluster
from e2e.faults.subject import STEPS, at_work, container_at_work, container_of, side_effect_of, subject
from e2e.faults.witness import Witness
from e2e.release import Release

Strike = Callable[[], None]

pytestmark = pytest.mark.timeout(420)


@pytest.fixture
def strike(request: pytest.FixtureRequest, release: Release, cluster: Cluster) -> Strike:
    """Kills every process of the component that the test names."""
    if request.param == "apiserver":
        return lambda: _restart(cluster)

    def kill() -> None:
        for pod in release.pods(request.param):
            cluster.kill_container(container_of(pod))

    return kill


def _restart(cluster: Cluster) -> None:
    cluster.kill("apiserver")
    cluster.start("apiserver")


@pytest.mark.parametrize("strike", ["operator", "gateway", "postgres", "apiserver"], indirect=True)
def test_a_run_survives_a_kill_in_each_of_its_steps(
    strike: Strike, kubectl: Kubectl, namespace: str, our_image: str, capsys: pytest.CaptureFixture[str]
) -> None:
    applied = subject(kubectl.within(namespace), our_image)
    last = time.monotonic()
    for step in STEPS:
        at_work(applied, step)
        strike()
        last = time.monotonic()
    status = applied.finished(180)["status"]
    with capsys.disabled():
        print(f"\n  finished {time.monotonic() - last:.1f} s after the last kill")
    assert status["run"]["state"] == "Succeeded"
    assert {path: step["attempts"] for path, step in applied.steps().items()} == dict.fromkeys(STEPS, 1)
    assert Witness(applied.kubectl, our_image).heard() == dict.fromkeys(STEPS, 1)


@pytest.mark.parametrize(
    ("step", "container"), [("ours", "main"), ("theirs", "main"), ("agent", "agent"), ("agent", "sandbox")]
)
def test_a_side_effect_whose_process_was_killed_is_never_repeated(
    release: Release,
    kubectl: Kubectl,
    cluster: Cluster,
    namespace: str,
    our_image: str,
    step: str,
    container: str,
) -> None:
    applied = subject(kubectl.within(namespace), our_image)
    id_ = container_at_work(applied, step, container)
    side_effect_of(applied, step)
    cluster.kill_container(id_)
    status = applied.finished(180)["status"]
    assert status["run"]["state"] == "Failed"
    # Of a user's image the exit code is all there is: a program that ends with 137 looks the same.
    assert applied.condition("Stalled")["reason"] == ("Failed" if step == "theirs" else "OutcomeUnknown")
    assert Witness(applied.kubectl, our_image).heard()[step] == 1
