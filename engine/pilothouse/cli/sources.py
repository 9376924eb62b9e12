"""The values of ConfigMaps and Secrets in a local run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from pilothouse.records.failures import Failed, FailureCode
from pilothouse.workflows.work import ValueSource

T = TypeVar("T", str, bytes)


@dataclass(frozen=True)
class LocalSources:
    """What the steps of a run take from ConfigMaps (frozen with the run) and Secrets (read from its files).

    Its repr shows no value of a Secret.
    """

    config_maps: Mapping[str, Mapping[str, str]]
    secrets: Mapping[str, Mapping[str, bytes]] = field(repr=False)

    def value(self, source: ValueSource) -> str:
        """The value. Raises Failed(F-ENV) naming what is missing, or where it is not text."""
        if source.kind == "ConfigMap":
            return _find(source, self.config_maps)
        data = _find(source, self.secrets)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise Failed(FailureCode.ENV, f"{_shown(source)} is not text") from None


def _find(source: ValueSource, objects: Mapping[str, Mapping[str, T]]) -> T:
    if source.name not in objects:
        raise Failed(FailureCode.ENV, f"there is no {source.kind} `{source.name}`; add it to the files of the run")
    if source.key not in objects[source.name]:
        raise Failed(FailureCode.ENV, f"{source.kind} `{source.name}` has no key `{source.key}`")
    return objects[source.name][source.key]


def _shown(source: ValueSource) -> str:
    return f"key `{source.key}` of {source.kind} `{source.name}`"
