"""A shift: the time for which this process leads. All that it remembers of runs goes when it ends."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pilothouse.api import conditions as c
from pilothouse.store.errors import Conflict, Deposed, StoreUnavailable, StoreUnusable
from pilothouse.store.ports import RunStore
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse_operator.definitions import Definitions
from pilothouse_operator.drives import Drives
from pilothouse_operator.intake import Intake
from pilothouse_operator.kube.errors import ApiUnavailable, Changed, KubeError, Refused
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import BY_KIND
from pilothouse_operator.metrics import Metrics
from pilothouse_operator.objects import Key, Objects
from pilothouse_operator.settings import Settings
from pilothouse_operator.statuswriter import StatusWriter
from pilothouse_operator.verdict import Standing, Verdict, saying
from pilothouse_operator.workflows import Workflows
from pilothouse_operator.workqueue import WorkQueue

log = logging.getLogger("pilothouse.operator")


@dataclass(slots=True)
class Shift:
    """Looks at objects for as long as `deposed` is not set."""

    workflows: Workflows
    definitions: Definitions
    drives: Drives
    objects: Objects
    statuses: StatusWriter
    queue: WorkQueue[Key]
    metrics: Metrics
    deposed: asyncio.Event = field(default_factory=asyncio.Event)

    @classmethod
    def begin(
        cls,
        kube: Kube,
        store: RunStore,
        evaluator: Evaluator,
        objects: Objects,
        settings: Settings,
        installation: UUID,
        epoch: int,
        queue: WorkQueue[Key],
        metrics: Metrics,
    ) -> "Shift":
        """A shift under the leadership with that epoch."""
        intake, statuses = Intake(kube, evaluator), StatusWriter(kube, objects)
        drives = Drives(kube, store, evaluator, objects, settings, installation, epoch)
        again: Callable[[Key, float], None] = queue.add
        workflows = Workflows(kube, store, objects, intake, drives, statuses, again, metrics.ended)
        definitions = Definitions(kube, objects, intake, statuses, again)
        return cls(workflows, definitions, drives, objects, statuses, queue, metrics)

    async def ended(self) -> None:
        """Returns once a write has shown that another process leads."""
        await self.deposed.wait()

    async def look(self, key: Key) -> None:
        """One look. Whatever goes wrong with it, it is taken again."""
        try:
            with self.metrics.looking(key.kind):
                await self._reconcile(key)
            self.queue.succeeded(key)
        except Deposed:
            self.deposed.set()
        except (Conflict, Changed):
            self.queue.failed(key)  # somebody else wrote between the read and the write: an agent, of a quota its users
        except ApiUnavailable as error:
            log.warning("%s waits: %s", key, error)
            self.queue.failed(key)
        except Exception as error:
            await self._say(key, _hindrance(key, error))
            self.queue.failed(key)

    async def _reconcile(self, key: Key) -> None:
        if key.kind == "Workflow":
            await self.workflows.reconcile(key)
        else:
            await self.definitions.reconcile(key)

    async def _say(self, key: Key, verdict: Verdict) -> None:
        """Shows on an object what keeps it from being looked at. A verdict that was reached stands."""
        obj = self.objects.get(key.kind, key.namespace, key.name)
        if obj is None or _finished(before := self.statuses.before(obj)):
            return
        status = saying(verdict, before, obj["metadata"]["generation"], datetime.now(UTC))
        try:
            await self.statuses.write(BY_KIND[key.kind], obj, status, urgent=True)
        except KubeError as error:
            log.warning("%s: its status cannot be written: %s", key, error)


def _hindrance(key: Key, error: Exception) -> Verdict:
    """What a look failed of, for the log and, without what is none of a user's business, for the object's status."""
    match error:
        case StoreUnavailable():
            log.warning("%s waits: the store is away: %s", key, error)
            return Verdict(
                Standing.UNKNOWN, c.STORE_UNAVAILABLE, "the database is away; work waits and goes on by itself"
            )
        case StoreUnusable():
            log.error("%s waits: the store cannot be used: %s", key, error)
            told = (
                "the database cannot be used as it is; the operator's log says why, and work waits until it is mended"
            )
            return Verdict(Standing.UNKNOWN, c.STORE_UNAVAILABLE, told)
        case Refused():
            log.error("%s: the API server refuses: %s", key, error)
            return Verdict(Standing.WAITING, c.RECONCILE_FAILED, f"the API server refuses the operator: {error}")
    log.error("%s: a look failed; it is taken again", key, exc_info=error)
    told = "the operator failed unexpectedly; its log says how, and it tries again and again"
    return Verdict(Standing.WAITING, c.RECONCILE_FAILED, told)


def _finished(status: Mapping[str, Any]) -> bool:
    said = {each["type"]: each["status"] for each in status.get("conditions") or []}
    return said.get(c.FINISHED) == "True"
