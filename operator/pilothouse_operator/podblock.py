"""The user's `pod` block in the words of a Pod."""

from collections.abc import Iterable, Mapping
from typing import Any

from pilothouse.api.meta import EnvVar
from pilothouse.api.pod import Affinity, ApartFrom, NodeMatch, Pod, Resources, Volume


def placement(block: Pod) -> dict[str, Any]:
    """What the block says of the Pod as a whole."""
    said = {
        "nodeSelector": dict(block.node_selector or {}),
        "tolerations": [toleration.manifest() for toleration in block.tolerations],
        "affinity": _affinity(block.affinity) if block.affinity else {},
        "imagePullSecrets": [ref.manifest() for ref in block.image_pull_secrets],
        "priorityClassName": block.priority_class_name,
        "runtimeClassName": block.runtime_class_name,
        "serviceAccountName": block.service_account_name,
    }
    return {name: value for name, value in said.items() if value}


def merged_resources(ours: Mapping[str, Mapping[str, str]], block: Resources | None) -> dict[str, Any]:
    """The user's requests and limits over ours. What the user says of a resource replaces all that we say of it: a
    request of theirs may be above a limit of ours, and the API server would refuse both together."""
    requests = dict((block and block.requests) or {})
    limits = dict((block and block.limits) or {})
    return {
        "requests": {name: value for name, value in ours["requests"].items() if name not in limits} | requests,
        "limits": {name: value for name, value in ours["limits"].items() if name not in requests} | limits,
    }


def user_env(variables: Iterable[EnvVar]) -> list[dict[str, Any]]:
    """The variables as they are: a `$(NAME)` in them is text, as it is in a local run."""
    return [env_entry(variable.name, variable.manifest()) for variable in variables]


def env_entry(name: str, source: Mapping[str, Any]) -> dict[str, Any]:
    """A variable with a `value`, or with what `valueFrom` names."""
    if "value" in source:
        return {"name": name, "value": escaped(source["value"])}
    return {"name": name, "valueFrom": source["valueFrom"]}


def escaped(text: str) -> str:
    """The text, so that the kubelet expands no `$(NAME)` in it. To the kubelet `$$` is one `$`, wherever it stands."""
    return text.replace("$", "$$")


def user_volumes(block: Pod) -> list[dict[str, Any]]:
    """The volumes, under names that none of ours has."""
    return [{"name": _named(index), **_source(volume)} for index, volume in enumerate(block.volumes)]


def user_mounts(block: Pod) -> list[dict[str, Any]]:
    """Where a container has them."""
    return [
        {"name": _named(index), "mountPath": volume.mount_path, **({"readOnly": True} if volume.read_only else {})}
        for index, volume in enumerate(block.volumes)
    ]


def _named(index: int) -> str:
    return f"user-{index}"


def _source(volume: Volume) -> dict[str, Any]:
    if volume.config_map:
        return {"configMap": {"name": volume.config_map.name}}
    if volume.secret:
        return {"secret": {"secretName": volume.secret.name}}
    if volume.persistent_volume_claim:
        return {"persistentVolumeClaim": {"claimName": volume.persistent_volume_claim.name}}
    return {"emptyDir": volume.empty_dir.manifest() if volume.empty_dir else {}}


def _affinity(affinity: Affinity) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if (nodes := affinity.node_affinity) is not None:
        said["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": wish.weight, "preference": {"matchExpressions": _matches(wish.match)}}
                for wish in nodes.preferred
            ]
        }
        if nodes.required:
            terms = [{"matchExpressions": _matches(nodes.required)}]
            said["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if (apart := affinity.pod_anti_affinity) is not None:
        said["podAntiAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": [_term(term) for term in apart.required],
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": wish.weight, "podAffinityTerm": _term(wish)} for wish in apart.preferred
            ],
        }
    return said


def _matches(matches: Iterable[NodeMatch]) -> list[dict[str, Any]]:
    return [
        {"key": match.key, "operator": match.operator, **({"values": list(match.values)} if match.values else {})}
        for match in matches
    ]


def _term(term: ApartFrom) -> dict[str, Any]:
    return {"labelSelector": {"matchLabels": dict(term.labels)}, "topologyKey": term.topology_key}
