"""What keeps a Pod from starting, as far as it says so itself. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

_PATIENT = frozenset({"ContainerCreating", "PodInitializing"})
"""Reasons of waiting that tell nothing."""


def waiting(status: Mapping[str, Any]) -> str:
    """What keeps the Pod from starting, as its status says; empty where it says nothing."""
    for entry in (*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])):
        waits = entry.get("state", {}).get("waiting", {})
        if (reason := waits.get("reason", "")) and reason not in _PATIENT:
            return sentence(reason, waits.get("message", ""))
    for condition in status.get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return sentence("Unschedulable", condition.get("message", ""))
    return ""


def unmounted(pod: Mapping[str, Any]) -> str:
    """What a Pod may be waiting for without saying so: a kubelet tells of a volume that it cannot mount in Events only.
    Empty where it has come further than that, or has no volume that could be missing."""
    conditions = {each["type"]: each.get("status") for each in pod.get("status", {}).get("conditions", [])}
    sources = list(dict.fromkeys(_sources(pod)))
    if conditions.get("PodReadyToStartContainers") != "False" or not sources:
        return ""
    shown = ", ".join(sources[:5]) + (f" and {len(sources) - 5} more" if len(sources) > 5 else "")
    return f"its volumes are not mounted yet; they need {shown}, with the keys that are asked for"


def _sources(pod: Mapping[str, Any]) -> Iterator[str]:
    """What has to be there for the volumes."""
    for volume in pod["spec"].get("volumes", []):
        for source in (volume, *volume.get("projected", {}).get("sources", [])):
            if secret := source.get("secret"):
                yield f"Secret `{secret.get('secretName') or secret.get('name')}`"
            if config_map := source.get("configMap"):
                yield f"ConfigMap `{config_map['name']}`"
            if claim := source.get("persistentVolumeClaim"):
                yield f"PersistentVolumeClaim `{claim['claimName']}`"


def sentence(reason: str, message: str) -> str:
    return f"{reason}: {message.strip()}"[:500] if message else reason
