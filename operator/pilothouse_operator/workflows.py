"""Workflows: one look at one of them. Level-triggered: whatever happened before, the look finds what is due."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from pilothouse.api import conditions as c
from pilothouse.api.workflow import Workflow
from pilothouse.records.runs import Attempt, Run, Snapshot
from pilothouse.records.states import Shutdown
from pilothouse.store.ports import RunStore
from pilothouse.workflows.plan import Controls
from pilothouse_operator.asked import Asked, asked_of, asks_anew, brakes_of, ending, requests_of
from pilothouse_operator.drives import Drives, controls_begun_with, controls_of
from pilothouse_operator.intake import Intake, NotNow, read_workflow
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import NAMESPACES, PODS, WORKFLOWS
from pilothouse_operator.names import pod_name
from pilothouse_operator.objects import Key, Objects
from pilothouse_operator.retry import retried
from pilothouse_operator.statuswriter import StatusWriter
from pilothouse_operator.verdict import Standing, Verdict
from pilothouse_operator.workflowstatus import status_of, verdict_of

WAIT = 10.0
"""Seconds after which a Workflow that waits for another object is looked at again."""


@dataclass(slots=True)
class Workflows:
    """`again` asks for another look at a key after some seconds; `ended` hears of each run that has ended, by its
    state."""

    kube: Kube
    store: RunStore
    objects: Objects
    intake: Intake
    drives: Drives
    statuses: StatusWriter
    again: Callable[[Key, float], None]
    ended: Callable[[str], None]

    async def reconcile(self, key: Key) -> None:
        cached = self.objects.get(key.kind, key.namespace, key.name)
        obj = cached or await self.kube.get(WORKFLOWS, key.namespace, key.name)
        namespace = await self.kube.get(NAMESPACES, None, key.namespace)
        gone = any(each is None or "deletionTimestamp" in each["metadata"] for each in (namespace, obj))
        orphans = await self._orphans(key, None if gone or obj is None else UUID(obj["metadata"]["uid"]))
        if orphans and cached is not None and not await self._is_current(key, cached):
            return
        for run in orphans:
            await self.store.request_shutdown(run.ref, Shutdown.TERMINATE)
            await self._drive(key, run, None)
        if obj is None or namespace is None:
            return
        tenant = UUID(namespace["metadata"]["uid"])  # one that is created anew is another tenant
        await (self._see_off(key, obj, tenant) if gone else self._look(key, obj, tenant))

    async def _look(self, key: Key, obj: Object, tenant: UUID) -> None:
        uid = UUID(obj["metadata"]["uid"])
        newest = await self.store.runs(tenant, workflow=key.name, limit=1)
        latest = newest[0] if newest and newest[0].workflow_uid == uid else None
        try:
            workflow = read_workflow(obj)
            asked = asked_of(workflow, latest)
            if asked is not Asked.NOTHING and not await self._is_current(key, obj):
                return
            latest = await self._answer(asked, workflow, tenant, latest, newest[0].number if newest else 0)
            snapshot = None if latest is None else await self._drive(key, latest, controls_of(workflow.spec))
            if snapshot is not None and asked_of(workflow, snapshot.run) is not Asked.NOTHING:
                self.again(key, 0)
            verdict = self._verdict(workflow, snapshot)
            suspended = workflow.spec.suspend
        except NotNow as not_now:
            suspended, _ = brakes_of(obj)
            snapshot = None if latest is None else await self._go_on(key, obj, latest)
            verdict = not_now.verdict
            if verdict.standing is Standing.WAITING:
                self.again(key, WAIT)
        await self._tidy(key, uid, tenant, snapshot)
        await self._report(key, obj, verdict, snapshot, suspended)

    async def _see_off(self, key: Key, obj: Object, tenant: UUID) -> None:
        """A Workflow on its way out, which a finalizer may hold: its status says how its run ends."""
        newest = await self.store.runs(tenant, workflow=key.name, limit=1)
        if newest and str(newest[0].workflow_uid) == obj["metadata"]["uid"]:
            snapshot = await self.store.snapshot(newest[0].ref)
            await self._report(key, obj, verdict_of(snapshot, notes=self._notes(snapshot)), snapshot, suspended=False)

    async def _is_current(self, key: Key, obj: Object) -> bool:
        """Whether the object is as the API server has it now. Asked before anything that cannot be undone, for a watch
        may lag behind; where it is not, what is there is looked at next."""
        now = await self.kube.get(WORKFLOWS, key.namespace, key.name)
        if now is not None and now["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]:
            return True
        self.objects.correct(WORKFLOWS, key, now)
        self.again(key, 0)
        return False

    async def _answer(
        self, asked: Asked, workflow: Workflow, tenant: UUID, latest: Run | None, number: int
    ) -> Run | None:
        """Does what the object asks for; the run that is the latest one then. Raises NotNow."""
        requests = requests_of(workflow)
        if asked is Asked.BEGIN:
            return await self.store.create_run(await self.intake.new_run(workflow, tenant, number, requests))
        if latest is not None and asked is Asked.RETRY:
            return await self.store.create_run(retried(await self.store.snapshot(latest.ref), requests))
        if latest is not None and asked is Asked.END:
            return await self.store.request_shutdown(latest.ref, ending(workflow))
        return latest

    async def _go_on(self, key: Key, obj: Object, latest: Run) -> Snapshot:
        """A Workflow that cannot be honoured as it stands: what runs goes on as it began, unless it is to stop."""
        suspend, verb = brakes_of(obj)
        if latest.state.final:
            return await self.store.snapshot(latest.ref)
        if verb is not None and latest.shutdown is not verb and await self._is_current(key, obj):
            latest = await self.store.request_shutdown(latest.ref, verb)
        return await self._drive(key, latest, controls_begun_with(latest, suspend))

    async def _drive(self, key: Key, run: Run, controls: Controls | None) -> Snapshot:
        if run.state.final:
            self._let_go(run)
            return await self.store.snapshot(run.ref)
        drive = await self.drives.of(run, lambda after: self.again(key, after))
        done = await drive.reconciler.run_pass(controls)
        if done.run.state.final:
            self._let_go(done.run)
        elif done.wake_in is not None:
            self.again(key, done.wake_in)
        return done.snapshot

    def _let_go(self, run: Run) -> None:
        """Also of a run whose end was recorded by a look that was cut off then."""
        if self.drives.drop(run.ref):
            self.ended(run.state.value)

    async def _orphans(self, key: Key, uid: UUID | None) -> list[Run]:
        """Unfinished runs of Workflows that are gone: deleted, or deleted and created anew under the same name."""
        runs = await self.store.runs(namespace=key.namespace, workflow=key.name, unfinished=True)
        return [run for run in runs if run.workflow_uid != uid]

    async def _tidy(self, key: Key, uid: UUID, tenant: UUID, snapshot: Snapshot | None) -> None:
        """Deletes Pods of no open attempt, which a crash left after their outcome was recorded."""
        open_then = set() if snapshot is None else _open(key, snapshot.attempts.values())
        pods = [pod for pod in self.objects.pods_of(str(uid)) if pod["metadata"]["name"] not in open_then]
        # All is read again, now that the Pods were seen: another operator may have opened their attempts since.
        there = [pod for pod in [await self._there(pod) for pod in pods] if pod is not None]
        newest = await self.store.runs(tenant, workflow=key.name, limit=1) if there else []
        open_now = {name for run in newest for name in _open(key, await self.store.attempts(run.ref))}
        for pod in there:
            metadata = pod["metadata"]
            if metadata["name"] not in open_now:
                await self.kube.delete(PODS, metadata["namespace"], metadata["name"], metadata["uid"])

    async def _there(self, pod: Object) -> Object | None:
        """The Pod as it is now; None where it is gone, or about to be."""
        metadata = pod["metadata"]
        now = await self.kube.get(PODS, metadata["namespace"], metadata["name"])
        stays = now is not None and "deletionTimestamp" not in now["metadata"]
        return now if stays and now is not None and now["metadata"]["uid"] == metadata["uid"] else None

    def _notes(self, snapshot: Snapshot | None) -> Mapping[str, str]:
        """What the Pods of steps wait for, by the step's path."""
        drive = None if snapshot is None else self.drives.known(snapshot.run.ref)
        return drive.notes(snapshot.attempts) if drive and snapshot else {}

    def _verdict(self, workflow: Workflow, snapshot: Snapshot | None) -> Verdict:
        if snapshot is None or (snapshot.run.state.final and asks_anew(workflow, snapshot.run)):
            return _not_begun(workflow)
        return verdict_of(snapshot, suspended=workflow.spec.suspend, notes=self._notes(snapshot))

    async def _report(
        self, key: Key, obj: Object, verdict: Verdict, snapshot: Snapshot | None, suspended: bool
    ) -> None:
        notes = self._notes(snapshot)
        shown = {**obj, "status": self.statuses.before(obj)}
        status = status_of(shown, verdict, snapshot, datetime.now(UTC), suspended=suspended, notes=notes)
        urgent = snapshot is None or snapshot.run.state.final
        if (left := await self.statuses.write(WORKFLOWS, obj, status, urgent=urgent)) > 0:
            self.again(key, left)


def _open(key: Key, attempts: Iterable[Attempt]) -> set[str]:
    """The names of the Pods of open attempts. A name cannot be changed, as a label can."""
    return {pod_name(key.name, attempt) for attempt in attempts if not attempt.state.final}


def _not_begun(workflow: Workflow) -> Verdict:
    if workflow.spec.shutdown is not None:
        return Verdict(Standing.STALLED, c.CANCELLED, "spec.shutdown is set: nothing runs; take it away to run")
    if workflow.spec.suspend:
        return Verdict(Standing.UNKNOWN, c.SUSPENDED_BY_USER, "spec.suspend is true: no run begins")
    return Verdict(Standing.WORKING, c.PENDING, "the next run is about to begin")
