"""A witness of side effects: a volume to which each step adds a line, so that whoever ran twice is seen."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

from e2e import pods
from e2e.cluster.clients import Kubectl

CLAIM = "witness"
PATH = "/witness"


@dataclass(frozen=True)
class Witness:
    """The volume of one namespace."""

    kubectl: Kubectl
    image: str

    @classmethod
    def of(cls, kubectl: Kubectl, image: str) -> "Witness":
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": CLAIM},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        }
        kubectl.apply(claim)
        return cls(kubectl, image)

    @property
    def pod(self) -> dict[str, Any]:
        """The `pod` block of a step, or of an Agent, that can reach it."""
        volume = {"name": "witness", "mountPath": PATH, "persistentVolumeClaim": {"name": CLAIM}}
        return {"volumes": [volume]}

    def heard(self) -> Counter[str]:
        """How often each line was added."""
        source = {"persistentVolumeClaim": {"claimName": CLAIM}}
        reader = pods.restricted("reader", self.image, ["sh", "-c", "cat /data/log 2>/dev/null || true"], volume=source)
        reader["spec"]["securityContext"] |= {"runAsUser": 10002, "runAsGroup": 10002, "fsGroup": 10003}
        self.kubectl.apply(reader)
        self.kubectl.wait("jsonpath={.status.phase}=Succeeded", "pod/reader")
        lines = self.kubectl("logs", "reader").split()
        self.kubectl("delete", "pod", "reader")
        return Counter(lines)
