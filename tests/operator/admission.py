"""What keeps a call out of the API server of `fakekube`, in the words of a real one (1.34)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pilothouse_operator.kube.errors import Refused
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import PODS, Resource
from tests.operator.podsecurity import violations

USER = "system:serviceaccount:pilothouse:pilothouse-operator"
ENFORCE = "pod-security.kubernetes.io/enforce"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_ANNOTATIONS = 256 * 1024


@dataclass
class Admission:
    """`quotas` are Pods by namespace, `policies` the words of a policy by namespace; `revoked`, `without_account` and
    `terminating` are namespaces. A `blind` operator may not even read."""

    quotas: dict[str, int] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)
    revoked: set[str] = field(default_factory=set)
    without_account: set[str] = field(default_factory=set)
    terminating: set[str] = field(default_factory=set)
    blind: bool = False

    def authorize(self, verb: str, resource: Resource, namespace: str) -> None:
        """Raises Refused where RBAC has no such right for the operator, who may read everywhere."""
        if self.blind or (namespace in self.revoked and verb in ("create", "patch", "delete")):
            raise _forbidden(
                f'{resource.plural} is forbidden: User "{USER}" cannot {verb} resource "{resource.plural}" '
                f'in API group "{resource.group}" in the namespace "{namespace}"'
            )

    def admit(self, resource: Resource, namespace: Object | None, obj: Object, others: Sequence[Object]) -> None:
        """Raises Refused where an admission plugin does not let the new object in."""
        if namespace is None:
            return
        name, place = obj["metadata"]["name"], namespace["metadata"]["name"]
        begun = f'{resource.plural} "{name}" is forbidden: '
        if place in self.terminating:
            raise _forbidden(f"{begun}unable to create new content in namespace {place} because it is being terminated")
        if resource is PODS:
            self._admit_pod(begun, namespace, obj, others)

    def _admit_pod(self, begun: str, namespace: Object, pod: Object, others: Sequence[Object]) -> None:
        place, labels = namespace["metadata"]["name"], namespace["metadata"].get("labels", {})
        account = pod["spec"].get("serviceAccountName", "default")
        if place in self.without_account or account != "default":
            why = f'error looking up service account {place}/{account}: serviceaccount "{account}" not found'
            raise _forbidden(begun + why)
        if labels.get(ENFORCE) == "restricted" and (wrong := violations(pod)):
            raise _forbidden(f'{begun}violates PodSecurity "restricted:latest": {", ".join(wrong)}')
        if place in self.policies:
            raise _forbidden(begun + self.policies[place])
        used = sum(1 for other in others if other["status"]["phase"] not in ("Succeeded", "Failed"))
        if used >= self.quotas.get(place, used + 1):
            limit = self.quotas[place]
            raise _forbidden(f"{begun}exceeded quota: q, requested: pods=1, used: pods={used}, limited: pods={limit}")


def invalid(resource: Resource, obj: Object, before: Object | None = None) -> str:
    """Why the object is none that the API server takes; empty where it is one."""
    metadata = obj["metadata"]
    if len(metadata["name"]) > 253 or not _NAME.fullmatch(metadata["name"]):
        return f"metadata.name: Invalid value: {metadata['name']!r}"
    for key, value in metadata.get("labels", {}).items():
        if not _LABEL.fullmatch(value):
            return f"metadata.labels: Invalid value: {value!r} of {key}"
    if sum(len(key) + len(value.encode()) for key, value in metadata.get("annotations", {}).items()) > _ANNOTATIONS:
        return "metadata.annotations: Too long: may not be more than 262144 bytes"
    return _invalid_pod(obj["spec"], before) if resource is PODS else ""


def _invalid_pod(spec: dict[str, Any], before: Object | None) -> str:
    names = [container["name"] for container in (*spec["containers"], *spec.get("initContainers", []))]
    if len(names) > len(set(names)) or not all(len(name) <= 63 and _NAME.fullmatch(name) for name in names):
        return f"spec.containers: names of {names}"
    if before is None:
        return ""
    old = before["spec"]
    if {"schedulingGates": [], **spec}["schedulingGates"] not in ([], old.get("schedulingGates", [])):
        return "spec.schedulingGates: only deletion is allowed"
    if spec.get("activeDeadlineSeconds", 0) > old.get("activeDeadlineSeconds", 2**31):
        return "spec.activeDeadlineSeconds: must be less than or equal to previous value"
    kept = ({key: value for key, value in each.items() if key not in _MUTABLE} for each in (spec, old))
    return "spec: Forbidden: pod updates may not change fields other than these" if next(kept) != next(kept) else ""


_MUTABLE = frozenset({"schedulingGates", "activeDeadlineSeconds", "nodeName"})


def _forbidden(message: str) -> Refused:
    return Refused(message, forbidden=True)
