"""ConfigMap and Secret documents: Kubernetes' own kinds, as far as a local run needs them.

No message and no repr shows a Secret's value.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainValidator
from pydantic_core import PydanticCustomError

from pilothouse.api.base import ApiModel
from pilothouse.api.explain import shown
from pilothouse.api.meta import ObjectMeta
from pilothouse.api.rules import Rule

MAX_DATA = 1024 * 1024
"""Bytes of all values of one object, as Kubernetes has it."""

_KEY = re.compile(r"[-._a-zA-Z0-9]{1,253}")


def _refuse(problem: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "{problem}", {"problem": problem})


def _mapping(value: object) -> object:
    if not isinstance(value, dict):
        raise _refuse("must be a mapping")
    for key in value:
        if not isinstance(key, str) or not _KEY.fullmatch(key):
            raise _refuse(f"has the key {shown(key)}; a key is up to 253 letters, digits, -, _ and .")
    return value


def _text(value: object) -> bytes:
    if not isinstance(value, str):
        raise _refuse("must be a text: quote it")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise _refuse("holds a lone surrogate, which is not text") from None


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(re.sub(rb"[\r\n]", b"", _text(value)), validate=True)
    except binascii.Error:
        raise _refuse("must be base64") from None


def _plain_base64(value: object) -> bytes:
    try:
        return _decoded(value)
    except PydanticCustomError:
        raise _refuse("must be base64; write plain text under stringData") from None


Texts = Annotated[dict[str, Annotated[bytes, PlainValidator(_text)]], BeforeValidator(_mapping)]
Base64 = Annotated[dict[str, Annotated[bytes, PlainValidator(_decoded)]], BeforeValidator(_mapping)]
SecretBase64 = Annotated[dict[str, Annotated[bytes, PlainValidator(_plain_base64)]], BeforeValidator(_mapping)]


class _ConfigData(ApiModel):
    """Values by key."""

    api_version: Literal["v1"]
    metadata: ObjectMeta
    immutable: bool = False

    @property
    def values(self) -> Mapping[str, bytes]:
        """Every value by its key."""
        raise NotImplementedError


def _fits(holder: Any) -> str | None:
    size = sum(map(len, holder.values.values()))
    return None if size <= MAX_DATA else f"holds more than {MAX_DATA // 1024:,} KiB of data"


def _no_key_twice(config: Any) -> str | None:
    twice = sorted(config.data.keys() & config.binary_data.keys())
    return f"the key `{twice[0]}` stands in data and in binaryData" if twice else None


_FITS = Rule("", "", _fits)


class ConfigMap(_ConfigData):
    """A ConfigMap. `data` holds texts, `binaryData` base64."""

    rules: ClassVar[tuple[Rule, ...]] = (Rule("", "", _no_key_twice), _FITS)

    kind: Literal["ConfigMap"]
    data: Texts = Field(default_factory=dict)
    binary_data: Base64 = Field(default_factory=dict)

    @property
    def values(self) -> Mapping[str, bytes]:
        return {**self.data, **self.binary_data}

    @property
    def texts(self) -> Mapping[str, str]:
        """The values that are text."""
        return dict(_texts(self.values))


class Secret(_ConfigData):
    """A Secret. `data` holds base64, `stringData` texts, which win."""

    rules: ClassVar[tuple[Rule, ...]] = (_FITS,)

    kind: Literal["Secret"]
    type: str = "Opaque"
    data: SecretBase64 = Field(default_factory=dict, repr=False)
    string_data: Texts = Field(default_factory=dict, repr=False)

    @property
    def values(self) -> Mapping[str, bytes]:
        return {**self.data, **self.string_data}


def _texts(values: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        try:
            yield key, value.decode()
        except UnicodeDecodeError:
            continue
