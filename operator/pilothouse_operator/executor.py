"""Attempts as Pods: the executor of a cluster. Every call may be made again after a crash.

row -> gated Pod -> the row knows the Pod -> the gate goes -> the Pod runs and ends -> the outcome is recorded -> the
Pod is deleted. A Pod that its row does not know is gated, so it never ran; one that the row knows and that is gone
has an unknown outcome.
"""

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from pilothouse.api.fields import seconds
from pilothouse.api.workflow import Step
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import Attempt, StepId
from pilothouse.records.states import AttemptState
from pilothouse.store.ports import RunStore
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.work import Work
from pilothouse_operator.kube.errors import AlreadyExists, Changed, Refused
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import PODS
from pilothouse_operator.names import ATTEMPT, Owner, pod_name
from pilothouse_operator.objects import Objects, key_of
from pilothouse_operator.outcome import Seen, Stop, see
from pilothouse_operator.pods import GATE, GRACE, IMAGE, STOP, STOP_SECONDS, Ground
from pilothouse_operator.waiting import unmounted

UNMOUNTED_SECONDS = 10
"""Seconds after which a Pod without its volumes says so."""


class Held(Exception):  # noqa: N818 - not a failure: the attempt waits
    """The Pod cannot be made now, and may be later. The message says what is waited for."""


@dataclass(slots=True)
class Memory:
    """What is known of attempts beyond rows and Pods. Nothing that counts is lost with it."""

    stopped: dict[UUID, Failure | None] = field(default_factory=dict)
    """Attempts that were ended before any Pod of theirs could run."""
    vanished: dict[UUID, float] = field(default_factory=dict)
    """When the Pod of an attempt was first missed, by the loop's clock in seconds."""
    held: dict[UUID, str] = field(default_factory=dict)
    """What keeps the Pod of an attempt from being made."""
    pending: dict[UUID, str] = field(default_factory=dict)
    """What keeps the Pod of an attempt from starting."""

    def forget(self, attempt: UUID) -> None:
        for known in (self.stopped, self.vanished, self.held, self.pending):
            known.pop(attempt, None)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the executors of one run share. `objects` has Pods as they were last seen; `wake` asks for another look
    after some seconds."""

    kube: Kube
    store: RunStore
    epoch: int
    owner: Owner
    objects: Objects
    wake: Callable[[float], None]
    memory: Memory = field(default_factory=Memory)


class PodExecutor:
    """What command and agent attempts have in common. `steps` and `config_maps` are those that the run has frozen."""

    def __init__(
        self,
        around: Surroundings,
        ground: Ground,
        steps: Mapping[StepId, Step],
        config_maps: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._around = around
        self._ground = ground
        self._steps = steps
        self._config_maps = config_maps

    @abstractmethod
    async def manifest(self, attempt: Attempt, work: Work) -> dict[str, Any]:
        """The attempt's Pod. Raises Failed where it cannot be made."""

    @abstractmethod
    def role(self, attempt: Attempt) -> str:
        """What the attempt's Pod is."""

    @abstractmethod
    async def ended(self, attempt: Attempt, seen: Seen) -> Ending | None:
        """The end of an attempt whose Pod is over."""

    async def silent(self, attempt: Attempt, seen: Seen) -> str:
        """Why an attempt whose program runs may be doing nothing; empty where there is no sign of that."""
        return ""

    @abstractmethod
    def gone(self, attempt: Attempt) -> Ending:
        """The end of an attempt whose Pod is gone without a trace."""

    async def running(self, attempt: Attempt) -> bool:
        if attempt.ref.attempt in self._around.memory.stopped or attempt.carrier is not None:
            return True
        pod = await self._pod(attempt)
        return pod is not None and not self._see(attempt, pod).gated

    async def start(self, attempt: Attempt, work: Work) -> None:
        memory = self._around.memory
        try:
            pod = await self._create(attempt, work)
        except Held as held:
            memory.held[attempt.ref.attempt] = str(held)
            return
        memory.held.pop(attempt.ref.attempt, None)
        await self._around.store.carry(attempt.ref, self._around.epoch, pod["metadata"]["uid"])
        await self._release(pod)

    async def ending(self, attempt: Attempt) -> Ending | None:
        memory, id_ = self._around.memory, attempt.ref.attempt
        if id_ in memory.stopped:
            return _stopped(memory.stopped[id_])
        pod = await self._pod(attempt)
        if pod is None:
            return await self._missing(attempt)
        memory.vanished.pop(id_, None)
        seen = self._see(attempt, pod)
        if attempt.carrier is not None and seen.gated:
            if (now := await self._pod(attempt, fresh=True)) is not None:
                await self._release(now)
            return None
        if seen.over:
            return await self.ended(attempt, seen)
        await self._watch(attempt, seen)
        return None

    async def stop(self, attempt: Attempt, failure: Failure | None) -> None:
        pod = await self._pod(attempt, fresh=True)
        if pod is not None:
            await self._end(attempt, pod, failure)
        elif attempt.carrier is None:
            self._stop_unstarted(attempt, failure)

    async def forget(self, attempt: Attempt) -> None:
        if (pod := await self._pod(attempt)) is not None:
            await self._delete(pod, at_once=self._see(attempt, pod).ended)
        self._around.memory.forget(attempt.ref.attempt)

    async def close(self) -> None:
        """Nothing: Pods go on by themselves."""

    async def _pod(self, attempt: Attempt, fresh: bool = False) -> Object | None:
        """The attempt's own Pod; None where there is none, or where another one has its name."""
        namespace, name = self._around.owner.namespace, pod_name(self._around.owner.name, attempt)
        pod = None if fresh else self._around.objects.get(PODS.kind, namespace, name)
        pod = pod or await self._around.kube.get(PODS, namespace, name)
        return pod if pod is not None and self._is_of(pod, attempt) else None

    def _see(self, attempt: Attempt, pod: Object) -> Seen:
        return see(pod, self.role(attempt))

    def _is_of(self, pod: Object, attempt: Attempt) -> bool:
        """A Pod that is being deleted before its row knows it is none of ours any more: it will not run."""
        metadata = pod["metadata"]
        if attempt.carrier is not None:
            return bool(metadata["uid"] == attempt.carrier)
        owners = {owner["uid"] for owner in metadata.get("ownerReferences", [])}
        ours = metadata.get("labels", {}).get(ATTEMPT) == str(attempt.ref.attempt) and self._around.owner.uid in owners
        return ours and "deletionTimestamp" not in metadata

    async def _create(self, attempt: Attempt, work: Work) -> Object:
        """The attempt's Pod, also where a start that was cut off has made it already."""
        manifest = await self.manifest(attempt, work)
        namespace = self._around.owner.namespace
        try:
            return await self._around.kube.create(PODS, namespace, manifest)
        except AlreadyExists:
            if (there := await self._pod(attempt, fresh=True)) is not None:
                return there
            raise Held(f"another Pod has the name {manifest['metadata']['name']}; delete it") from None
        except Refused as error:
            raise _refusal(error) from None

    async def _release(self, pod: Object) -> None:
        """Takes the gate away: from here on the Pod may run."""
        gates = [gate for gate in pod["spec"].get("schedulingGates", []) if gate["name"] != GATE]
        if len(gates) < len(pod["spec"].get("schedulingGates", [])):
            await self._patch(pod, {"spec": {"schedulingGates": gates}})

    async def _end(self, attempt: Attempt, pod: Object, failure: Failure | None) -> None:
        """Ends a Pod for good: one that no node has taken is deleted as it was seen, so it provably never ran. One that
        a kubelet still prepares is deleted as well, which ends the kubelet's wait for a volume or an image; what became
        of it is what the kubelet says at last."""
        metadata, seen = pod["metadata"], self._see(attempt, pod)
        if (seen.stopping and not seen.held_up) or "deletionTimestamp" in metadata:
            return
        if "nodeName" not in pod["spec"]:
            version = metadata["resourceVersion"]
            if await self._around.kube.delete(PODS, metadata["namespace"], metadata["name"], metadata["uid"], version):
                self._stop_unstarted(attempt, failure)
            else:
                self._around.wake(0)
            return
        if not seen.stopping:
            limit = {"activeDeadlineSeconds": STOP_SECONDS}
            await self._patch(pod, {"metadata": {"annotations": {STOP: Stop(failure).note()}}, "spec": limit})
        if seen.held_up:
            await self._delete(pod)

    async def _patch(self, pod: Object, patch: Mapping[str, Any]) -> None:
        metadata = pod["metadata"]
        whole = {**patch, "metadata": {**patch.get("metadata", {}), "uid": metadata["uid"]}}
        try:
            await self._around.kube.patch(PODS, metadata["namespace"], metadata["name"], whole)
        except Changed:
            return  # it is another Pod by now: the next look finds ours gone

    async def _delete(self, pod: Object, at_once: bool = False) -> None:
        """`at_once`: there is nothing left for a kubelet to end. What it says of the Pod is then news to nobody, and
        nobody is told."""
        metadata = pod["metadata"]
        if "deletionTimestamp" not in metadata:
            key = key_of(PODS, pod)
            await self._around.kube.delete(PODS, key.namespace, key.name, metadata["uid"], at_once=at_once)
            if at_once:
                self._around.objects.forget(key, metadata["uid"])

    def _stop_unstarted(self, attempt: Attempt, failure: Failure | None) -> None:
        self._around.memory.stopped[attempt.ref.attempt] = failure
        self._around.wake(0)

    async def _missing(self, attempt: Attempt) -> Ending | None:
        """A Pod that was never made is made by `start`. One that is gone may run for its grace period still."""
        if attempt.carrier is None:
            return None
        now = asyncio.get_running_loop().time()
        since = self._around.memory.vanished.setdefault(attempt.ref.attempt, now)
        if (left := since + GRACE - now) > 0:
            self._around.wake(left)
            return None
        return self.gone(attempt)

    async def _watch(self, attempt: Attempt, seen: Seen) -> None:
        """Ends a Pod that takes too long to start or, where nobody else does, to end."""
        if not seen.begun:
            self._around.memory.pending[attempt.ref.attempt] = seen.waiting or self._unmounted(seen)
            limit = seconds(self._steps[attempt.step].pending_timeout)
            await self._within(attempt, limit, seen.created_at, _not_started(seen, limit))
            return
        self._around.memory.pending[attempt.ref.attempt] = await self.silent(attempt, seen)
        timeout = self._steps[attempt.step].timeout
        if seen.role == IMAGE and timeout and seen.running_since is not None:
            await self._within(attempt, seconds(timeout), seen.running_since, _TOO_LONG)

    def _unmounted(self, seen: Seen) -> str:
        """Every volume takes a moment, and that is nothing to tell."""
        why = unmounted(seen.pod)
        if why and (left := UNMOUNTED_SECONDS - age(seen.created_at)) > 0:
            self._around.wake(left)
            return ""
        return why

    async def _within(self, attempt: Attempt, limit: float, since: datetime, failure: Failure) -> None:
        left = limit - age(since)
        if left > 0:
            self._around.wake(left)
        elif (now := await self._pod(attempt, fresh=True)) is not None:
            await self._end(attempt, now, failure)


_TOO_LONG = Failure(FailureCode.TMO, "the command reached the step's timeout and was ended")


def age(since: datetime) -> float:
    """Seconds that have passed since then."""
    return time.time() - since.timestamp()


def _not_started(seen: Seen, limit: float) -> Failure:
    why = seen.waiting or unmounted(seen.pod) or "its status gives no reason"
    return Failure(FailureCode.ENV, f"its Pod did not start within {limit:g} seconds: {why}")


def _stopped(failure: Failure | None) -> Ending:
    return Ending(AttemptState.CANCELLED if failure is None else AttemptState.FAILED, failure=failure)


_RESOURCES = (
    "set `pod.resources` of the step or of its agent to what the namespace takes; a LimitRange there can give defaults"
)


def _refusal(error: Refused) -> Exception:
    """Quotas, rights and accounts may change, so they are waited for; a policy will say the same the next time, and a
    Pod that is no valid one stays so."""
    if error.by_quota or error.terminating or error.lacks_rights or error.lacks_account:
        return Held(str(error))
    if error.by_resources:
        return Failed(FailureCode.SEC, f"the API server refuses the Pod: {error}; {_RESOURCES}", "PolicyRefused")
    if error.by_policy:
        return Failed(FailureCode.SEC, f"the API server refuses the Pod: {error}", "PolicyRefused")
    return Failed(FailureCode.INP, f"the API server takes no such Pod: {error}")
