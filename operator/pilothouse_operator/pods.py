"""Pods, as every kind of attempt has them. Pure: from an attempt and what it needs to the manifest.

All meet Pod Security *restricted*. A Pod comes with a scheduling gate, which the operator takes away once the
attempt's row knows the Pod: nothing runs that no row knows of.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pilothouse.api.base import GROUP
from pilothouse.api.pod import Pod
from pilothouse.records.runs import Attempt
from pilothouse_operator.names import Owner, labels, pod_name
from pilothouse_operator.podblock import merged_resources, placement, user_env, user_mounts, user_volumes

GATE = f"{GROUP}/recorded"
"""The scheduling gate, taken away when the attempt's row has the Pod's UID."""

STOP = f"{GROUP}/stop"
"""Annotation: why the operator ends the Pod; a failure as JSON, or an empty object where there is none. A note for the
next operator, which others may change or take away: that it ends the Pod, `STOP_SECONDS` says."""

STOP_SECONDS = 1
"""`activeDeadlineSeconds` of a Pod that is to end: the kubelet ends it at once, and its log stays readable. The API
server lets nobody raise it again."""

COMMAND, IMAGE, AGENT = "command", "image", "agent"
"""Roles: a command in our image under our entry point, one in the user's image, an agent."""

MAIN = {COMMAND: "main", IMAGE: "main", AGENT: "agent"}
"""By role, the container whose end is the attempt's."""

PYTHON = "/opt/pilothouse/bin/python"
"""The interpreter of our image, by its path: users set PATH for what they run beside it."""

GROUP_ID = 10003
"""The group of all that users run and of what serves it; volumes are given to it."""

GRACE = 30
"""Seconds that a Pod has to end once it is asked to."""

SLACK = 60
"""Seconds beyond all others after which the kubelet ends a Pod that nobody else ended."""

RESOURCES: Mapping[str, Mapping[str, str]] = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"memory": "512Mi"},
}
"""Of the main container, where the user sets none."""


@dataclass(frozen=True, slots=True)
class Ground:
    """What is the same for all Pods of a run: whose they are, and our image."""

    installation: UUID
    owner: Owner
    image: str
    image_pull_policy: str = "IfNotPresent"


@dataclass(frozen=True, slots=True)
class Content:
    """What a role puts into its Pod. `user` is its uid and gid; `timeout` is in seconds, None where it has none."""

    role: str
    containers: Sequence[Mapping[str, Any]]
    user: int
    volumes: Sequence[Mapping[str, Any]] = ()
    init_containers: Sequence[Mapping[str, Any]] = ()
    annotations: Mapping[str, str] | None = None
    timeout: float | None = None


def build(ground: Ground, attempt: Attempt, block: Pod, pending_timeout: float, content: Content) -> dict[str, Any]:
    """The Pod of an attempt. `block` is what the user said of it; `pending_timeout` is in seconds."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(ground.owner.name, attempt),
            "namespace": ground.owner.namespace,
            "labels": dict(labels(ground.installation, ground.owner.name, attempt, content.role)),
            "annotations": dict(content.annotations or {}),
            "ownerReferences": [dict(ground.owner.reference())],
        },
        "spec": _spec(block, pending_timeout, content),
    }


def _spec(block: Pod, pending_timeout: float, content: Content) -> dict[str, Any]:
    spec = {
        "restartPolicy": "Never",
        "schedulingGates": [{"name": GATE}],
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE,
        "securityContext": _pod_security(content.user),
        "initContainers": list(content.init_containers),
        "containers": list(content.containers),
        "volumes": [*content.volumes, *user_volumes(block)],
        **placement(block),
    }
    if content.timeout is not None:  # so that it ends although the operator is away; from when a node took it
        spec["activeDeadlineSeconds"] = int(content.timeout + pending_timeout) + SLACK
    return {name: value for name, value in spec.items() if value != []}


def with_resources(container: Mapping[str, Any], block: Pod) -> dict[str, Any]:
    """The container with the user's requests and limits."""
    return {**container, "resources": merged_resources(RESOURCES, block.resources)}


def with_belongings(container: Mapping[str, Any], block: Pod) -> dict[str, Any]:
    """The container with the user's variables and volumes. Variables that it has already win."""
    env, mounts = container.get("env", []), container.get("volumeMounts", [])
    taken = {entry["name"] for entry in env}
    return {
        **container,
        "env": [*(entry for entry in user_env(block.env) if entry["name"] not in taken), *env],
        "volumeMounts": [*mounts, *user_mounts(block)],
    }


def _pod_security(user: int) -> dict[str, Any]:
    return {
        "runAsNonRoot": True,
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": GROUP_ID,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def security(user: int | None = None) -> dict[str, Any]:
    """The security context of a container; `user` is its uid and gid where they are not the Pod's."""
    own = {} if user is None else {"runAsUser": user, "runAsGroup": user}
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        **own,
    }


def scratch(name: str, size: str, memory: bool = False) -> dict[str, Any]:
    """An emptyDir volume."""
    medium = {"medium": "Memory"} if memory else {}
    return {"name": name, "emptyDir": {"sizeLimit": size, **medium}}


def mount(name: str, path: str, read_only: bool = False) -> dict[str, Any]:
    return {"name": name, "mountPath": path, **({"readOnly": True} if read_only else {})}
