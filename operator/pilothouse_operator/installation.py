"""The installation: the id that stands in the database and in an object of the release. They must be one.

A mistyped DSN must not run everything again, so on a mismatch nothing is touched.
"""

from dataclasses import dataclass
from uuid import UUID

from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import CONFIG_MAPS

KEY = "id"
"""The key of the ConfigMap."""


class StoreMismatch(Exception):  # noqa: N818 - the reason's name
    """The database belongs to another installation."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The ConfigMap of the release that holds the id."""

    kube: Kube
    namespace: str
    config_map: str

    async def recorded(self) -> UUID | None:
        """The id of the release; None before the first migration has written it. Raises StoreMismatch where what
        stands there is none."""
        found = await self.kube.get(CONFIG_MAPS, self.namespace, self.config_map)
        text = ((found or {}).get("data") or {}).get(KEY, "")
        try:
            return UUID(text) if text else None
        except ValueError:
            where = f"ConfigMap {self.namespace}/{self.config_map}"
            raise StoreMismatch(
                f"`{KEY}` of {where} is no installation's id: restore it; until then nothing is touched"
            ) from None

    async def record(self, id_: UUID) -> None:
        await self.kube.patch(CONFIG_MAPS, self.namespace, self.config_map, {"data": {KEY: str(id_)}})

    def check(self, recorded: UUID | None, found: UUID | None) -> None:
        """Raises StoreMismatch where the database is not the one that the release knows. `found` is None where the
        database is empty, or not one of ours."""
        if recorded is not None and recorded != found:
            what = "is empty" if found is None else f"belongs to installation {found}"
            raise StoreMismatch(
                f"the database {what}, and this release to installation {recorded} (ConfigMap "
                f"{self.namespace}/{self.config_map}): correct the DSN; nothing is touched until then"
            )
