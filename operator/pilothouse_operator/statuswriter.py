"""Writes statuses, and an Event where a user should see what has become of an object."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pilothouse.api import conditions as c
from pilothouse_operator.kube.errors import Changed, Refused
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import EVENTS, Resource
from pilothouse_operator.objects import Objects
from pilothouse_operator.verdict import timestamp
from pilothouse_operator.workflowstatus import differs

PAUSE = 1.0
"""Seconds between two writes of one object's status, unless it says that a run has ended."""

KEPT = 60.0
"""Seconds for which a write is remembered. By then the watch has shown it."""

COMPONENT = "pilothouse-operator"

_TOLD = frozenset(
    {
        c.SUCCEEDED,
        c.FAILED,
        c.CANCELLED,
        c.DEADLINE_EXCEEDED,
        c.OUTCOME_UNKNOWN,
        c.POLICY_REFUSED,
        c.INVALID_SPEC,
        c.SPEC_TOO_LARGE,
        c.NOT_SUPPORTED,
    }
)
"""Reasons of `Ready` that become an Event when they come up."""


@dataclass(frozen=True, slots=True)
class _Written:
    """A status, and when it was written by the loop's clock, in seconds."""

    status: Mapping[str, Any]
    at: float


@dataclass(slots=True)
class StatusWriter:
    """Remembers what it wrote last, by UID, for the watch may lag behind."""

    kube: Kube
    objects: Objects
    _written: dict[str, _Written] = field(default_factory=dict)

    async def write(self, resource: Resource, obj: Object, status: Mapping[str, Any], *, urgent: bool) -> float:
        """Writes the status if it says anything new. Returns the seconds after which it has to be tried again, since
        the last write was too short a time ago; 0 if all is written."""
        uid, before = obj["metadata"]["uid"], self.before(obj)
        if not differs(before, status):
            return 0.0
        now, last = asyncio.get_running_loop().time(), self._written.get(uid)
        if not urgent and last is not None and (left := last.at + PAUSE - now) > 0:
            return left
        if await self._set(resource, obj, status):
            self._remember(uid, _Written(status, now))
            await self._tell(resource, obj, before, status)
        return 0.0

    def before(self, obj: Object) -> Mapping[str, Any]:
        """The status as it was last written, by us or by the operator before."""
        last = self._written.get(obj["metadata"]["uid"])
        return last.status if last is not None else obj.get("status") or {}

    def _remember(self, uid: str, written: _Written) -> None:
        """The oldest stand first, so those that have been there for too long go first."""
        self._written.pop(uid, None)
        self._written[uid] = written
        while (oldest := next(iter(self._written.items())))[1].at < written.at - KEPT:
            del self._written[oldest[0]]

    async def _set(self, resource: Resource, obj: Object, status: Mapping[str, Any]) -> bool:
        metadata = obj["metadata"]
        try:
            found = await self.kube.set_status(
                resource, metadata["namespace"], metadata["name"], metadata["uid"], status
            )
        except Changed:
            return False  # deleted, and created anew under the same name
        if found is None:
            return False
        self.objects.wrote_status(resource, obj, found)
        return True

    async def _tell(
        self, resource: Resource, obj: Object, before: Mapping[str, Any], status: Mapping[str, Any]
    ) -> None:
        was, now = _ready(before), _ready(status)
        if now.get("reason") not in _TOLD or (was.get("reason"), was.get("message")) == (now["reason"], now["message"]):
            return
        try:
            await self.kube.create(EVENTS, obj["metadata"]["namespace"], _event(resource, obj, now))
        except Refused:
            return  # an Event is a courtesy: its namespace may be on its way out


def _ready(status: Mapping[str, Any]) -> Mapping[str, Any]:
    found = (condition for condition in status.get("conditions") or [] if condition["type"] == c.READY)
    return next(found, {})


def _event(resource: Resource, obj: Object, ready: Mapping[str, Any]) -> dict[str, Any]:
    metadata, now = obj["metadata"], timestamp(datetime.now(UTC))
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{metadata['name'][:200]}.{uuid4().hex[:16]}", "namespace": metadata["namespace"]},
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
        },
        "type": "Normal" if ready["status"] == "True" else "Warning",
        "reason": ready["reason"],
        "message": ready["message"][:1024],
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
    }
