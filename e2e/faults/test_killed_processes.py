"""Processes killed with -9 in the middle of each kind of step: nothing is lost, and nothing is done twice."""

import time

import pytest

from e2e.cluster.clients import Kubectl
from e2e.cluster.clusters import Cluster
from e2e.faults.strikes import Strikes
from e2e.faults.subject import STEPS, at_work, container_at_work, side_effect_of, subject
from e2e.faults.witness import Witness
from e2e.release import Release

pytestmark = pytest.mark.timeout(420)


@pytest.mark.parametrize("part", ["operator", "gateway", "postgres", "apiserver"])
def test_a_run_survives_a_kill_in_each_of_its_steps(
    part: str,
    strikes: Strikes,
    kubectl: Kubectl,
    namespace: str,
    our_image: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    applied = subject(kubectl.within(namespace), our_image)
    last = time.monotonic()
    for step in STEPS:
        at_work(applied, step)
        strikes.kill(part)
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
