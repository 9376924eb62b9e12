"""A node whose kubelet is stopped: what runs on it goes on, and nothing is begun a second time."""

import time

import pytest

from e2e.cluster.clients import Kubectl
from e2e.cluster.clusters import Cluster
from e2e.faults.subject import SECONDS, at_work, subject
from e2e.faults.witness import Witness
from e2e.release import Release

pytestmark = pytest.mark.timeout(400)


def test_a_step_whose_kubelet_was_stopped_ends_once_the_kubelet_is_back(
    release: Release, kubectl: Kubectl, cluster: Cluster, namespace: str, our_image: str
) -> None:
    applied = subject(kubectl.within(namespace), our_image)
    at_work(applied, "ours")
    cluster.stop("kubelet")
    try:
        time.sleep(2 * SECONDS)  # the step's program ends meanwhile, and nobody hears of it
        assert applied.steps()["ours"]["state"] == "Running"
    finally:
        cluster.start("kubelet")
    assert applied.finished(180)["status"]["run"]["state"] == "Succeeded"
    assert set(Witness(applied.kubectl, our_image).heard().values()) == {1}
