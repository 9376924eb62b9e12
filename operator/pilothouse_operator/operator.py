"""The operator: what is watched goes into the queue, and workers look at it for as long as this process leads."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pilothouse.records.runs import RunRef
from pilothouse.store.errors import Conflict, StoreError
from pilothouse.store.ports import Leadership, RunStore
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse_operator.installation import StoreMismatch
from pilothouse_operator.kube.errors import KubeError
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import OURS, PODS, WORKFLOWS, Resource
from pilothouse_operator.metrics import Metrics
from pilothouse_operator.names import INSTALLATION
from pilothouse_operator.objects import Key, Objects, key_of
from pilothouse_operator.settings import Settings
from pilothouse_operator.shift import Shift
from pilothouse_operator.workqueue import WorkQueue

WORKERS = 16
"""Objects that are looked at at the same time."""

SWEEP = 30.0
"""Seconds between two sweeps, which find what no event told of."""

HEARTBEAT = 5.0
"""Seconds between two looks whether this process still leads."""

OUTAGE_PAUSE = 1.0

SCOPE = "operator"

MANY = 100_000
"""Unfinished runs that one sweep takes in."""

log = logging.getLogger("pilothouse.operator")


@dataclass(slots=True)
class Operator:
    """One process. It acts while it leads; otherwise it watches."""

    kube: Kube
    store: RunStore
    evaluator: Evaluator
    settings: Settings
    installation: UUID
    objects: Objects = field(default_factory=Objects)
    queue: WorkQueue[Key] = field(default_factory=lambda: WorkQueue(lambda key: key.namespace))
    metrics: Metrics = field(init=False)
    leads: bool = False

    def __post_init__(self) -> None:
        self.metrics = Metrics(lambda: len(self.queue), self.objects.ages)

    def see(self, resource: Resource, change: str | None, body: Mapping[str, Any]) -> None:
        """Takes in an event of a watch."""
        if resource is PODS:
            self._see_pod(change, body)
            return
        if not self.objects.see(resource, change, body):
            return
        key = key_of(resource, body)
        self.queue.add(key)
        if resource.kind == "Agent":  # a Workflow may wait for it
            for obj in self.objects.all("Workflow", key.namespace):
                self.queue.add(key_of(WORKFLOWS, obj))

    def _see_pod(self, change: str | None, body: Mapping[str, Any]) -> None:
        """A Pod that does not say any more whose it is, is not kept: who looks for it reads it by its name, which
        nobody can change."""
        key, owner = key_of(PODS, body), _workflow_of(body)
        known = self.objects.get(key.kind, key.namespace, key.name)
        if owner is not None and body["metadata"].get("labels", {}).get(INSTALLATION) == str(self.installation):
            self.objects.see(PODS, change, body)
            self.queue.add(owner)
        else:
            self.objects.forget(key)
        if known is not None and (before := _workflow_of(known)) is not None:
            self.queue.add(before)

    async def lead(self) -> None:
        """Leads whenever nobody else does, until cancelled. Raises StoreMismatch where another database has taken the
        place of the one that this process began with."""
        while True:
            try:
                async with self.store.lead(SCOPE) as leadership:
                    if (found := await self.store.installation()) != self.installation:
                        raise StoreMismatch(f"the database belongs to installation {found}, not {self.installation}")
                    await self._act(leadership)
            except Conflict as error:
                log.info("%s", error)
            except StoreError as error:
                log.warning("the store is away, work waits: %s", error)
            await asyncio.sleep(HEARTBEAT)

    async def _act(self, leadership: Leadership) -> None:
        """Works until another process leads, or a part of this one fails."""
        log.info("leading, epoch %d", leadership.epoch)
        shift = Shift.begin(
            self.kube,
            self.store,
            self.evaluator,
            self.objects,
            self.settings,
            self.installation,
            leadership.epoch,
            self.queue,
            self.metrics,
        )
        for resource in OURS:
            for obj in self.objects.all(resource.kind):
                self.queue.add(key_of(resource, obj))
        parts = [self.queue.work(shift.look) for _ in range(WORKERS)]
        parts += [self._listen(shift), self._sweep(), self._heartbeat(leadership), shift.ended()]
        try:
            self._leading(True)
            await _first_of([asyncio.create_task(part) for part in parts])
        finally:
            self._leading(False)
            log.warning("leading no more")

    def _leading(self, now: bool) -> None:
        self.leads = now
        self.metrics.leading(now)

    async def _heartbeat(self, leadership: Leadership) -> None:
        """Ends when another process has taken the lead, or another database the place of ours. While the store is away
        or broken, none can."""
        while True:
            await asyncio.sleep(HEARTBEAT)
            with suppress(StoreError):
                if await self.store.epoch_of(leadership.scope) != leadership.epoch:
                    return
                if await self.store.installation() != self.installation:
                    return

    async def _listen(self, shift: Shift) -> None:
        """Only hints come this way: whatever goes wrong with them, the sweep goes on."""
        while True:
            try:
                async with self.store.all_changes() as changes:
                    async for run in changes:
                        await self._hear(shift, run)
            except StoreError:
                await asyncio.sleep(OUTAGE_PAUSE)

    async def _hear(self, shift: Shift, run: RunRef | None) -> None:
        if run is None:
            await self._sweep_runs()
        elif (key := shift.drives.key_of(run)) is not None:
            self.queue.add(key)

    async def _sweep(self) -> None:
        while True:
            await self._sweep_objects()
            await self._sweep_runs()
            await asyncio.sleep(SWEEP)

    async def _sweep_runs(self) -> None:
        """Every run that has not ended is looked at, also where its object is gone and nothing told of that. Where a
        namespace is not served any more, all stays as it is until it is again."""
        with suppress(StoreError):
            runs = await self.store.run_names(unfinished=True, limit=MANY)
            self.metrics.unfinished(len(runs))
            for run in runs:
                if self.settings.serves(run.namespace):
                    self.queue.add(Key("Workflow", run.namespace, run.workflow))

    async def _sweep_objects(self) -> None:
        """Forgets what was deleted, and how a Pod was, while nobody watched. A refusal proves nothing."""
        for namespace in self.settings.namespaces or (None,):
            with suppress(KubeError):
                for obj in await self._gone(WORKFLOWS, namespace):
                    self.queue.add(key_of(WORKFLOWS, obj))
                for pod in await self._stale(namespace):
                    if (owner := _workflow_of(pod)) is not None:
                        self.queue.add(owner)

    async def _gone(self, resource: Resource, namespace: str | None) -> Sequence[Object]:
        """Forgets those that are not there any more, and tells which."""
        known = list(self.objects.all(resource.kind, namespace))
        there = {obj["metadata"]["uid"] for obj in await self.kube.names(resource, namespace)}
        return self._forget(resource, [obj for obj in known if obj["metadata"]["uid"] not in there])

    async def _stale(self, namespace: str | None) -> Sequence[Object]:
        """Forgets the Pods that are not there as they were seen, and tells which: a watch loses sight of one whose
        labels somebody took away."""
        known = list(self.objects.all(PODS.kind, namespace))
        there = {_version(pod) for pod in await self.kube.names(PODS, namespace, f"{INSTALLATION}={self.installation}")}
        return self._forget(PODS, [pod for pod in known if _version(pod) not in there])

    def _forget(self, resource: Resource, gone: Sequence[Object]) -> Sequence[Object]:
        for obj in gone:
            self.objects.forget(key_of(resource, obj), obj["metadata"]["uid"])
        return gone


def _version(obj: Mapping[str, Any]) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"]["resourceVersion"]


def _workflow_of(pod: Mapping[str, Any]) -> Key | None:
    """The Workflow that the Pod belongs to."""
    owners = pod["metadata"].get("ownerReferences", [])
    name = next((owner["name"] for owner in owners if owner["kind"] == WORKFLOWS.kind), None)
    return None if name is None else Key(WORKFLOWS.kind, pod["metadata"]["namespace"], name)


async def _first_of(tasks: list["asyncio.Task[None]"]) -> None:
    """Waits for the first that ends, raises what it raised, and ends the others."""
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
