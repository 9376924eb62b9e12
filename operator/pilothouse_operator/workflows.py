"""Workflows: one look at one of them. Level-triggered: whatever happened before, the look finds what is due."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from pilothouse.api import conditions as c
from pilothouse.api.workflow import RETRY_REQUESTED_AT, Workflow
from pilothouse.records.runs import Run, Snapshot
from pilothouse.records.states import RunState, Shutdown
from pilothouse.store.ports import RunStore
from pilothouse_operator.drives import Drives, controls_of
from pilothouse_operator.intake import Intake, NotNow, asks_anew, read, requests_of
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import NAMESPACES, PODS, WORKFLOWS
from pilothouse_operator.names import ATTEMPT
from pilothouse_operator.objects import Key, Objects
from pilothouse_operator.retry import retried
from pilothouse_operator.statuswriter import StatusWriter
from pilothouse_operator.verdict import Standing, Verdict, conditions, ready
from pilothouse_operator.workflowstatus import status_of, verdict_of

WAIT = 10.0
"""Seconds after which a Workflow that waits for another object is looked at again."""


@dataclass(slots=True)
class Workflows:
    """`again` asks for another look at a key after some seconds."""

    kube: Kube
    store: RunStore
    objects: Objects
    intake: Intake
    drives: Drives
    statuses: StatusWriter
    again: Callable[[Key, float], None]

    async def reconcile(self, key: Key) -> None:
        obj = self.objects.get(key.kind, key.namespace, key.name) or await self.kube.get(
            WORKFLOWS, key.namespace, key.name
        )
        tenant = await self._tenant(key.namespace)
        if tenant is None or obj is None or "deletionTimestamp" in obj["metadata"]:
            await self._end_orphans(key, None)
            return
        await self._end_orphans(key, UUID(obj["metadata"]["uid"]))
        await self._look(key, obj, tenant)

    async def _look(self, key: Key, obj: Object, tenant: UUID) -> None:
        uid = UUID(obj["metadata"]["uid"])
        newest = await self.store.runs(tenant, workflow=key.name, limit=1)
        latest = newest[0] if newest and newest[0].workflow_uid == uid else None
        try:
            workflow = read(obj)
            assert isinstance(workflow, Workflow)  # noqa: S101 - the API serves no other kind at that place
            snapshot = await self._advance(key, workflow, tenant, latest, newest[0].number if newest else 0)
            verdict = self._verdict(workflow, snapshot, self._notes(snapshot))
            suspended = workflow.spec.suspend
        except NotNow as not_now:
            snapshot, verdict, suspended = await self._go_on(key, latest), not_now.verdict, False
            if verdict.standing is Standing.WAITING:
                self.again(key, WAIT)
        await self._tidy(uid, snapshot)
        await self._report(key, obj, verdict, snapshot, suspended)

    async def _advance(
        self, key: Key, workflow: Workflow, tenant: UUID, latest: Run | None, number: int
    ) -> Snapshot | None:
        """Brings the latest run forward, or begins the next one. Raises NotNow."""
        spec = workflow.spec
        if latest is None or (asks_anew(workflow, latest) and latest.state.final):
            if spec.shutdown is not None or spec.suspend:
                return None if latest is None else await self.store.snapshot(latest.ref)
            latest = await self.store.create_run(
                await self.intake.new_run(workflow, tenant, number, requests_of(workflow))
            )
        elif latest.state.final and (again := await self._retry(workflow, latest)) is not None:
            latest = again
        elif not latest.state.final and (spec.shutdown is not None or asks_anew(workflow, latest)):
            verb = Shutdown(spec.shutdown) if spec.shutdown else Shutdown.CANCEL
            await self.store.request_shutdown(latest.ref, verb)
        snapshot = await self._drive(key, latest, workflow)
        if snapshot.run.state.final and asks_anew(workflow, snapshot.run):
            self.again(key, 0)
        return snapshot

    async def _retry(self, workflow: Workflow, latest: Run) -> Run | None:
        """The run that repeats what failed of the latest one, where that is asked for."""
        asked = requests_of(workflow)
        same = asked.get(RETRY_REQUESTED_AT) == latest.requests.get(RETRY_REQUESTED_AT)
        if same or latest.state is RunState.SUCCEEDED or workflow.spec.shutdown or workflow.spec.suspend:
            return None
        return await self.store.create_run(retried(await self.store.snapshot(latest.ref), asked))

    async def _go_on(self, key: Key, latest: Run | None) -> Snapshot | None:
        """A Workflow that cannot be read any more: what runs goes on as it began."""
        if latest is None:
            return None
        return await self._drive(key, latest, None)

    async def _drive(self, key: Key, run: Run, workflow: Workflow | None) -> Snapshot:
        if run.state.final:
            return await self.store.snapshot(run.ref)
        drive = await self.drives.of(run, lambda after: self.again(key, after))
        done = await drive.reconciler.run_pass(controls_of(workflow.spec) if workflow else None)
        if done.run.state.final:
            self.drives.drop(run.ref)
        elif done.wake_in is not None:
            self.again(key, done.wake_in)
        return done.snapshot

    async def _end_orphans(self, key: Key, uid: UUID | None) -> None:
        """Ends the runs of Workflows that are gone: deleted, or deleted and created anew under the same name."""
        for run in await self.store.runs(workflow=key.name, unfinished=True):
            if run.namespace == key.namespace and run.workflow_uid != uid:
                await self.store.request_shutdown(run.ref, Shutdown.TERMINATE)
                await self._drive(key, run, None)

    async def _tidy(self, uid: UUID, snapshot: Snapshot | None) -> None:
        """Deletes Pods of no open attempt, which a crash left after their outcome was recorded."""
        pods = [pod for pod in self.objects.pods_of(str(uid)) if "deletionTimestamp" not in pod["metadata"]]
        known = {} if snapshot is None else snapshot.attempts
        open_now = {str(attempt.ref.attempt) for attempt in known.values() if not attempt.state.final}
        for pod in pods:
            metadata = pod["metadata"]
            if metadata.get("labels", {}).get(ATTEMPT) not in open_now:
                await self.kube.delete(PODS, metadata["namespace"], metadata["name"], metadata["uid"])

    def _notes(self, snapshot: Snapshot | None) -> Mapping[str, str]:
        """What the Pods of steps wait for, by the step's path."""
        drive = None if snapshot is None else self.drives.known(snapshot.run.ref)
        return drive.notes(snapshot.attempts) if drive and snapshot else {}

    def _verdict(self, workflow: Workflow, snapshot: Snapshot | None, notes: Mapping[str, str]) -> Verdict:
        if snapshot is None or (snapshot.run.state.final and asks_anew(workflow, snapshot.run)):
            return _not_begun(workflow)
        return verdict_of(snapshot, suspended=workflow.spec.suspend, notes=notes)

    async def _report(
        self, key: Key, obj: Object, verdict: Verdict, snapshot: Snapshot | None, suspended: bool
    ) -> None:
        notes = self._notes(snapshot)
        shown = {**obj, "status": self.statuses.before(obj)}
        status = status_of(shown, verdict, snapshot, datetime.now(UTC), suspended=suspended, notes=notes)
        urgent = snapshot is None or snapshot.run.state.final
        if (left := await self.statuses.write(WORKFLOWS, obj, status, urgent=urgent)) > 0:
            self.again(key, left)

    async def say(self, key: Key, reason: str, message: str) -> None:
        """Says of an unfinished Workflow that it cannot be told how it stands; its run and steps stay as they were."""
        obj = self.objects.get(key.kind, key.namespace, key.name)
        before = self.statuses.before(obj) if obj else {}
        finished = [each for each in before.get("conditions") or [] if each["type"] == c.FINISHED]
        if obj is None or any(each["status"] == "True" for each in finished):
            return
        generation, was = obj["metadata"]["generation"], before.get("conditions") or []
        said = ready(Verdict(Standing.UNKNOWN, reason, message))
        kept = [each for each in was if each["type"] not in (c.READY, c.RECONCILING, c.STALLED)]
        now = conditions(said, was, generation, datetime.now(UTC))
        status = {**before, "observedGeneration": generation, "conditions": [*now, *kept]}
        await self.statuses.write(WORKFLOWS, obj, status, urgent=True)

    async def _tenant(self, namespace: str) -> UUID | None:
        """The UID of the namespace as it is now: one that is created anew is another tenant."""
        found = await self.kube.get(NAMESPACES, None, namespace)
        return None if found is None else UUID(found["metadata"]["uid"])


def _not_begun(workflow: Workflow) -> Verdict:
    if workflow.spec.shutdown is not None:
        return Verdict(Standing.STALLED, c.CANCELLED, "spec.shutdown is set: nothing runs; take it away to run")
    if workflow.spec.suspend:
        return Verdict(Standing.UNKNOWN, c.SUSPENDED_BY_USER, "spec.suspend is true: no run begins")
    return Verdict(Standing.WORKING, c.PENDING, "the next run is about to begin")
