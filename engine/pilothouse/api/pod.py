"""The `pod` block: what users may say about the Pods that run their work. Security settings are not theirs to set."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pilothouse.api.base import ApiModel
from pilothouse.api.fields import Items, Labels, Name, ObjectName, Quantity, Text
from pilothouse.api.meta import EnvVars, LocalRef
from pilothouse.api.rules import Rule, exactly_one

QualifiedName = Annotated[
    str,
    Text(
        317,
        1,
        "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$",
        says="must be a label key like team or example.com/team",
    ),
]
LabelValue = Annotated[str, Text(63)]
Quantities = Annotated[dict[str, Quantity], Field(max_length=16, strict=True)]
MountPath = Annotated[str, Text(1024, 1, "^/[^:]*$", says="must be an absolute path without a colon")]
Weight = Annotated[int, Field(ge=1, le=100)]


class Resources(ApiModel):
    """Requests and limits of the main container, by resource name (`cpu`, `memory`, …)."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class Toleration(ApiModel):
    """As in a Pod."""

    key: QualifiedName | None = None
    operator: Literal["Equal", "Exists"] = "Equal"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    toleration_seconds: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None


class NodeMatch(ApiModel):
    """An expression over the labels of a node."""

    key: QualifiedName
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: Annotated[tuple[LabelValue, ...], Items(64)] = ()


NodeMatches = Annotated[tuple[NodeMatch, ...], Items(16, 1)]


class PreferredNode(ApiModel):
    """Nodes that are better than others."""

    weight: Weight
    match: NodeMatches


class NodeAffinity(ApiModel):
    """Which nodes."""

    required: NodeMatches | None = None
    """All of these must hold."""
    preferred: Annotated[tuple[PreferredNode, ...], Items(16)] = ()


class ApartFrom(ApiModel):
    """Pods, chosen by label, that should not share a node, zone or other topology domain with this one."""

    labels: Annotated[Labels, Field(min_length=1)]
    topology_key: QualifiedName


class PreferredApart(ApartFrom):
    """The same, as a wish."""

    weight: Weight


class PodAntiAffinity(ApiModel):
    """Which Pods to keep away from."""

    required: Annotated[tuple[ApartFrom, ...], Items(16)] = ()
    preferred: Annotated[tuple[PreferredApart, ...], Items(16)] = ()


class Affinity(ApiModel):
    """Where Pods go."""

    node_affinity: NodeAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class EmptyDir(ApiModel):
    """A scratch directory that ends with the Pod."""

    size_limit: Quantity | None = None
    medium: Literal["Memory"] | None = None


class Volume(ApiModel):
    """A volume and where it is mounted in the main container."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("emptyDir", "configMap", "secret", "persistentVolumeClaim"),)

    name: Name
    mount_path: MountPath
    read_only: bool = False
    empty_dir: EmptyDir | None = None
    config_map: LocalRef | None = None
    secret: LocalRef | None = None
    persistent_volume_claim: LocalRef | None = None


class Pod(ApiModel):
    """What the user may set of a Pod."""

    resources: Resources | None = None
    node_selector: Labels | None = None
    tolerations: Annotated[tuple[Toleration, ...], Items(16)] = ()
    affinity: Affinity | None = None
    image_pull_secrets: Annotated[tuple[LocalRef, ...], Items(16, key="name")] = ()
    env: EnvVars = ()
    volumes: Annotated[tuple[Volume, ...], Items(16, key="name")] = ()
    priority_class_name: ObjectName | None = None
    runtime_class_name: ObjectName | None = None
    service_account_name: ObjectName | None = None
