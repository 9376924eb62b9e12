"""The Pack kind: a versioned bundle of skills, used only while its signature holds."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pilothouse.api.base import API_VERSION, ApiModel, Observed
from pilothouse.api.conditions import Conditions
from pilothouse.api.fields import Digest, Image, Items, Line, Name, Text, Url
from pilothouse.api.meta import Headers, KeyRef, LocalRef, ObjectMeta
from pilothouse.api.rules import NAME_FITS_LABEL, Rule, exactly_one

Version = Annotated[
    str,
    Text(
        64,
        5,
        r"^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$",
        says="must be a version like 1.2.0",
    ),
]


class OciSource(ApiModel):
    """An OCI registry."""

    reference: Image
    pull_secret_ref: LocalRef | None = None


class HttpSource(ApiModel):
    """An archive at an address."""

    url: Url
    headers: Headers = ()


class HubSource(ApiModel):
    """A hub that lists packs by name and version, and tells which were revoked."""

    url: Url


class PackSource(ApiModel):
    """Where the archive is."""

    rules: ClassVar[tuple[Rule, ...]] = (exactly_one("configMap", "oci", "http", "hub"),)

    config_map: KeyRef | None = None
    oci: OciSource | None = None
    http: HttpSource | None = None
    hub: HubSource | None = None


class Signature(ApiModel):
    """The signature, inline so that admission can verify it; else it is looked for beside the source."""

    bundle: Annotated[str, Text(65536, 2)]
    """A Sigstore bundle, as JSON, over the digest."""


class Identity(ApiModel):
    """Who signed: the subject of a certificate and the issuer that vouches for it."""

    issuer: Url
    subject: Annotated[str, Text(1024, 1)]


class Verification(ApiModel):
    """Narrows whom the cluster's owner trusts; it never widens that."""

    identities: Annotated[tuple[Identity, ...], Items(16, 1)]
    """The signer must be one of these."""


class PackSpec(ApiModel):
    """Which pack, and from where."""

    pack: Name
    """The name that the pack's own manifest gives."""
    version: Version
    source: PackSource
    digest: Digest
    """Of the archive, byte for byte."""
    signature: Signature | None = None
    verification: Verification | None = None


class PackSkill(Observed):
    """A skill that the pack brings."""

    name: Annotated[str, Text(127, 1)]
    description: Line | None = None


class Signer(Observed):
    """Who signed, as verified."""

    issuer: Annotated[str, Text(2048)] | None = None
    subject: Annotated[str, Text(1024)] | None = None


class PackStatus(Observed):
    """What was observed. Agents never rely on it: they read the database's record, by digest."""

    observed_generation: int | None = None
    conditions: Conditions = ()
    digest: Digest | None = None
    signer: Signer | None = None
    skills: Annotated[tuple[PackSkill, ...], Items(256, key="name")] = ()


class Pack(ApiModel):
    """A versioned bundle of skills."""

    rules: ClassVar[tuple[Rule, ...]] = (NAME_FITS_LABEL,)

    api_version: Literal["pilothouse.dev/v1alpha1"] = API_VERSION
    kind: Literal["Pack"] = "Pack"
    metadata: ObjectMeta
    spec: PackSpec
    status: PackStatus | None = None
