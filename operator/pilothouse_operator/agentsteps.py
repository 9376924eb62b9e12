"""Agent attempts as Pods. The agent commits its own outcome; a Pod that ended with the row still open was lost, and the
next attempt goes on from the session."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pilothouse.api.agent import AgentSpec
from pilothouse.api.fields import seconds
from pilothouse.api.workflow import Step
from pilothouse.attempts.assignment import Assignment
from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import Attempt, StepId
from pilothouse.records.sessions import session_of
from pilothouse.records.states import AttemptState
from pilothouse.records.values import ValueRefused
from pilothouse.workflows.executor import Ending
from pilothouse.workflows.work import AgentWork, Work
from pilothouse_operator.agentpod import AgentPod
from pilothouse_operator.executor import PodExecutor, Surroundings, age
from pilothouse_operator.outcome import Seen, result_of
from pilothouse_operator.pods import AGENT, Ground

SILENT_SECONDS = 20
"""Seconds after which an agent that has opened no session is said to be cut off."""


class AgentPods(PodExecutor):
    """`store_url` and `store_ca` say how an agent reaches the gateway."""

    def __init__(
        self,
        around: Surroundings,
        ground: Ground,
        steps: Mapping[StepId, Step],
        config_maps: Mapping[str, Mapping[str, str]],
        store_url: str,
        store_ca: str,
    ) -> None:
        super().__init__(around, ground, steps, config_maps)
        self._store_url = store_url
        self._store_ca = store_ca
        self._heard: set[UUID] = set()

    async def manifest(self, attempt: Attempt, work: Work) -> dict[str, Any]:
        if not isinstance(work, AgentWork):
            raise TypeError(f"step {attempt.step} is not an agent's")
        pod = AgentPod(
            ground=self._ground,
            attempt=attempt,
            spec=AgentSpec.model_validate(work.spec),
            asked=[AgentSpec.model_validate(spec) for spec in work.agents.values()],
            work=await self._assign(attempt, work),
            store_url=self._store_url,
            store_ca=self._store_ca,
            pending_timeout=seconds(self._steps[attempt.step].pending_timeout),
            timeout=work.timeout,
        )
        return pod.manifest()

    def role(self, attempt: Attempt) -> str:
        return AGENT

    async def ended(self, attempt: Attempt, seen: Seen) -> Ending | None:
        result = result_of(seen, None)
        return Ending(result.state, failure=result.failure)

    async def silent(self, attempt: Attempt, seen: Seen) -> str:
        """An agent opens its session first; as long as it has not, nothing can be heard of it but in its log."""
        if attempt.ref.attempt in self._heard or seen.running_since is None:
            return ""
        if (left := SILENT_SECONDS - age(seen.running_since)) > 0:
            self._around.wake(left)
            return ""
        session = session_of(attempt.ref.run, attempt.step)
        if any(known.id == session for known in await self._around.store.sessions(attempt.ref.run)):
            self._heard.add(attempt.ref.attempt)
            return ""
        return (
            f"the agent has not reached the gateway yet, {self._store_url}: does a NetworkPolicy forbid it, or the "
            f"way to DNS? `kubectl logs {seen.pod['metadata']['name']} -c agent` says more"
        )

    def gone(self, attempt: Attempt) -> Ending:
        return Ending(AttemptState.LOST, failure=Failure(FailureCode.ENV, "its Pod is gone"))

    async def _assign(self, attempt: Attempt, work: AgentWork) -> str:
        """Stores the assignment; its digest."""
        try:
            data = Assignment.of(work, lambda ref: self._config_maps[ref.name][ref.key]).encode()
        except ValueRefused as error:
            raise Failed(FailureCode.INP, f"the agent's arguments cannot be stored: {error}") from None
        return (await self._around.store.put_blob(attempt.ref.run.tenant, data)).digest
