"""Object metadata, references to other objects of the same namespace, and values taken from them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from pilothouse.api.base import ApiModel, Observed
from pilothouse.api.fields import Items, Key, Labels, ObjectName, Template, Text, Timestamp, Variable
from pilothouse.api.rules import Rule, at_least_one, exactly_one

AnnotationMap = Annotated[dict[str, Annotated[str, Text(262144)]], Field(max_length=256, strict=True)]
Uid = Annotated[str, Text(64, 1)]


class OwnerReference(Observed):
    """The object that this one belongs to."""

    api_version: Annotated[str, Text(253, 1)]
    kind: Annotated[str, Text(63, 1)]
    name: ObjectName
    uid: Uid
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Observed):
    """The metadata fields that we read. The API server owns the rest."""

    rules: ClassVar[tuple[Rule, ...]] = (at_least_one("name", "generateName"),)

    name: ObjectName | None = None
    generate_name: Annotated[str, Text(253, 1)] | None = None
    namespace: ObjectName | None = None
    uid: Uid | None = None
    labels: Labels | None = None
    annotations: AnnotationMap | None = None
    generation: Annotated[int, Field(ge=0)] | None = None
    resource_version: Annotated[str, Text(64)] | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    owner_references: Annotated[tuple[OwnerReference, ...], Items(64)] = ()
    finalizers: Annotated[tuple[Annotated[str, Text(253, 1)], ...], Items(64)] = ()
    managed_fields: Annotated[tuple[Any, ...], Items(1000)] = ()
    """Who set which field, as the server keeps it; whatever its form."""


class LocalRef(ApiModel):
    """An object of the same namespace."""

    name: ObjectName


class KeyRef(ApiModel):
    """One key in a Secret or ConfigMap of the same namespace."""

    name: ObjectName
    key: Key


class SecretSource(ApiModel):
    """A value that is a secret."""

    secret_key_ref: KeyRef


class ConfigMapSource(ApiModel):
    """A value that is no secret."""

    config_map_key_ref: KeyRef


class ValueFrom(ApiModel):
    """A value taken from a Secret or a ConfigMap."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("secretKeyRef", "configMapKeyRef"),)

    secret_key_ref: KeyRef | None = None
    config_map_key_ref: KeyRef | None = None


class EnvVar(ApiModel):
    """An environment variable."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("value", "valueFrom"),)

    name: Variable
    value: Template | None = None
    value_from: ValueFrom | None = None


class Header(ApiModel):
    """An HTTP header."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("value", "valueFrom"),)

    name: Annotated[str, Text(128, 1, "^[-!#$%&'*+.^_`|~0-9A-Za-z]+$", says="must be the name of an HTTP header")]
    value: Annotated[str, Text(8192)] | None = None
    value_from: ValueFrom | None = None


EnvVars = Annotated[tuple[EnvVar, ...], Items(64, key="name")]
Headers = Annotated[tuple[Header, ...], Items(32, key="name")]
