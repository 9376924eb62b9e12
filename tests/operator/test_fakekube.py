"""The cluster in memory, held to what a real API server does; and the check of Pod Security that it applies."""

import copy
from dataclasses import dataclass
from typing import Any

import pytest

from pilothouse_operator.kube.port import Kube
from tests.operator.admission import ENFORCE, Admission
from tests.operator.conformance import KubeConformance, gated
from tests.operator.fakekube import FakeKube
from tests.operator.podsecurity import violations


@dataclass
class FakePlace:
    kube: FakeKube
    namespace: str = "team-a"

    async def fill(self) -> None:
        self.kube.admission.quotas[self.namespace] = 0

    async def powerless(self) -> Kube:
        other = FakeKube(admission=Admission(blind=True))
        other._objects = self.kube._objects
        return other

    async def terminate(self) -> None:
        self.kube.admission.terminating.add(self.namespace)


@pytest.fixture
def place() -> FakePlace:
    kube = FakeKube()
    kube.add_namespace("team-a", {ENFORCE: "restricted"})
    return FakePlace(kube)


class TestFakeKube(KubeConformance):
    """The suite over the cluster in memory."""


def test_a_restricted_pod_violates_nothing() -> None:
    assert violations(gated()) == []


def changed(path: str, value: Any) -> dict[str, Any]:
    """A restricted Pod with one field of another value; None takes the field away."""
    pod = copy.deepcopy(gated())
    *parents, name = path.split(".")
    target: Any = pod["spec"]
    for parent in parents:
        target = target[int(parent)] if parent.isdecimal() else target.setdefault(parent, {})
    if value is None:
        del target[name]
    else:
        target[name] = value
    return pod


MAIN = "containers.0.securityContext"
UNSAFE = [
    changed("hostNetwork", True),
    changed("hostPID", True),
    changed("securityContext.runAsNonRoot", None),
    changed("securityContext.runAsNonRoot", False),
    changed("securityContext.runAsUser", 0),
    changed("securityContext.seccompProfile", None),
    changed("securityContext.sysctls", [{"name": "a", "value": "b"}]),
    changed(f"{MAIN}.runAsNonRoot", False),
    changed(f"{MAIN}.runAsUser", 0),
    changed(f"{MAIN}.seccompProfile", {"type": "Unconfined"}),
    changed(f"{MAIN}.privileged", True),
    changed(f"{MAIN}.allowPrivilegeEscalation", None),
    changed(f"{MAIN}.capabilities", {"drop": ["NET_RAW"]}),
    changed(f"{MAIN}.capabilities", {"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
    changed(f"{MAIN}.procMount", "Unmasked"),
    changed(f"{MAIN}.seLinuxOptions", {"user": "x"}),
    changed("containers.0.ports", [{"hostPort": 80}]),
    changed("volumes", [{"name": "v", "hostPath": {"path": "/"}}]),
    changed("volumes", [{"name": "v", "emptyDir": {}, "nfs": {}}]),
    changed("initContainers", [{"name": "i", "image": "x"}]),
]


@pytest.mark.parametrize("pod", UNSAFE)
def test_a_pod_that_is_not_restricted_is_found_out(pod: dict[str, Any]) -> None:
    assert violations(pod) != []
