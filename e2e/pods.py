"""Small Pods of the restricted kind for tests to send around, made of the image under test."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from e2e.cluster.clients import Kubectl, Manifest

_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


def restricted(
    name: str,
    image: str,
    command: Sequence[str],
    *,
    labels: Mapping[str, str] | None = None,
    volume: Mapping[str, Any] | None = None,
    token: bool = False,
) -> dict[str, Any]:
    """A Pod that Pod Security admits as restricted. `volume` is a volume's source; it is mounted at /data."""
    mounts = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108  # the container's own
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    if volume is not None:
        mounts.append({"name": "data", "mountPath": "/data"})
        volumes.append({"name": "data", **volume})
    container = {
        "name": "main",
        "image": image,
        "imagePullPolicy": "Never",
        "command": list(command),
        "securityContext": _SECURITY,
        "volumeMounts": mounts,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": token,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": volumes,
        },
    }


def finished(kubectl: Kubectl, pod: Manifest, seconds: int = 60) -> str:
    """Runs a Pod to its end, which must be a good one, and returns what it printed."""
    kubectl.apply(pod)
    name = pod["metadata"]["name"]
    kubectl.wait("jsonpath={.status.phase}=Succeeded", f"pod/{name}", seconds=seconds)
    return kubectl("logs", name)


def python(kubectl: Kubectl, pod: str, code: str) -> Any:
    """Runs Python in a running Pod and returns what it printed, read as JSON."""
    return json.loads(kubectl("exec", pod, "--", "python", "-c", code))
