"""What the operator is told by its Deployment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


class SettingsError(ValueError):
    """The environment lacks something, or holds something that cannot be."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`namespaces` are those that are served; empty: all. `store_ca` is the text of the certificate (PEM) that
    agents check the gateway by."""

    dsn: str = field(repr=False)
    namespace: str
    installation_config_map: str
    image: str
    image_pull_policy: str = "IfNotPresent"
    store_url: str = ""
    store_ca: str = ""
    namespaces: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "Settings":
        """Raises SettingsError naming the variable."""
        given = _Given(environment)
        return cls(
            dsn=given.need("DSN"),
            namespace=given.need("NAMESPACE"),
            installation_config_map=given.need("INSTALLATION_CONFIGMAP"),
            image=given.need("IMAGE"),
            image_pull_policy=given.get("IMAGE_PULL_POLICY") or "IfNotPresent",
            store_url=given.need("STORE_URL"),
            store_ca=given.file("STORE_CA"),
            namespaces=tuple(name.strip() for name in given.get("WATCH_NAMESPACES").split(",") if name.strip()),
        )

    def serves(self, namespace: str) -> bool:
        return not self.namespaces or namespace in self.namespaces


def read_setting(name: str) -> str:
    """The variable PILOTHOUSE_<name>. Raises SettingsError."""
    return _Given(os.environ).need(name)


@dataclass(frozen=True, slots=True)
class _Given:
    environment: Mapping[str, str]

    def get(self, name: str) -> str:
        return self.environment.get(f"PILOTHOUSE_{name}", "").strip()

    def need(self, name: str) -> str:
        if not (value := self.get(name)):
            raise SettingsError(f"PILOTHOUSE_{name} is not set; the chart sets it")
        return value

    def file(self, name: str) -> str:
        path = self.need(name)
        try:
            return Path(path).read_text()
        except OSError as error:
            raise SettingsError(f"PILOTHOUSE_{name}: {path} cannot be read: {error.strerror}") from None
