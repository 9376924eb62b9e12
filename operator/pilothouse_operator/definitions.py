"""Definitions: whether an Agent can be run. Nothing runs because of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pilothouse.api import conditions as c
from pilothouse.api.agent import Agent
from pilothouse_operator.intake import Intake, NotNow, read
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import BY_KIND
from pilothouse_operator.objects import Key, Objects
from pilothouse_operator.statuswriter import StatusWriter
from pilothouse_operator.verdict import Standing, Verdict, saying

WAIT = 10.0
"""Seconds after which a definition that waits for another object is looked at again."""


@dataclass(slots=True)
class Definitions:
    """Looks at Agents, and says of the kinds that this release does not carry out yet that it does not."""

    kube: Kube
    objects: Objects
    intake: Intake
    statuses: StatusWriter
    again: Callable[[Key, float], None]

    async def reconcile(self, key: Key) -> None:
        resource = BY_KIND[key.kind]
        obj = self.objects.get(key.kind, key.namespace, key.name) or await self.kube.get(
            resource, key.namespace, key.name
        )
        if obj is None or "deletionTimestamp" in obj["metadata"]:
            return
        verdict = await self._verdict(obj)
        status = saying(verdict, self.statuses.before(obj), obj["metadata"]["generation"], datetime.now(UTC))
        await self.statuses.write(resource, obj, status, urgent=True)
        if verdict.standing is Standing.WAITING:
            self.again(key, WAIT)

    async def _verdict(self, obj: Mapping[str, Any]) -> Verdict:
        try:
            manifest = read(obj)
            if not isinstance(manifest, Agent):
                raise NotNow(Standing.STALLED, c.NOT_SUPPORTED, f"{manifest.kind} is not supported yet")
            await self.intake.check_agent(manifest)
        except NotNow as not_now:
            return not_now.verdict
        return Verdict(Standing.READY, c.ACCEPTED, "the definition can be run")
