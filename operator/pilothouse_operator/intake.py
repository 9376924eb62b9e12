"""Intake: from a Workflow as it was applied to a run that can begin, or to the verdict why it cannot."""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from uuid import UUID, uuid5

from pilothouse.api import conditions as c
from pilothouse.api.agent import Agent, AgentSpec
from pilothouse.api.base import ApiModel
from pilothouse.api.fields import seconds
from pilothouse.api.manifest import Manifest, ManifestError, load
from pilothouse.api.problem import Problem
from pilothouse.api.workflow import Workflow
from pilothouse.records.failures import Failed
from pilothouse.records.runs import NewRun, NewStep, StepId
from pilothouse.workflows.checks.check import check
from pilothouse.workflows.checks.fields import defects
from pilothouse.workflows.checks.references import Known, missing_references
from pilothouse.workflows.checks.support import supported, unsupported
from pilothouse.workflows.closure import config_refs, freeze, invoked
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.params import ParamError, bind
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import AGENTS, CONFIG_MAPS
from pilothouse_operator.ownership import key_of
from pilothouse_operator.verdict import Standing, Verdict

SHOWN = 5
"""Problems that a condition's message tells."""


class NotNow(Exception):  # noqa: N818 - a verdict, for the object's status
    """The object cannot be worked on as it is."""

    def __init__(self, standing: Standing, reason: str, message: str) -> None:
        super().__init__(message)
        self.verdict = Verdict(standing, reason, message)


@dataclass(frozen=True, slots=True)
class Intake:
    """What a Workflow is checked against."""

    kube: Kube
    evaluator: Evaluator

    async def new_run(self, workflow: Workflow, tenant: UUID, after: int, requests: Mapping[str, str]) -> NewRun:
        """The run that follows run number `after`. Its id is derived from both, so however often it is created, by
        whatever leader, it is one run. Raises NotNow."""
        spec, metadata = workflow.spec, workflow.metadata
        namespace = metadata.namespace or ""
        agents = await self._agents(namespace, invoked(spec))
        maps = await self._config_maps(namespace, (spec, *agents.values()))
        known = Known(agents=agents, config_maps=maps)
        await self._check(workflow, known)
        await self._check_agents(agents, known)
        uid = UUID(metadata.uid)
        try:
            closure, params = freeze(spec, agents, maps), bind(spec.params, {})
        except Failed as error:
            raise NotNow(Standing.WAITING, c.REFERENCE_NOT_FOUND, error.failure.message) from None
        except ParamError as error:
            raise NotNow(Standing.STALLED, c.INVALID_SPEC, f"spec.params: {error}") from None
        return NewRun(
            tenant=tenant,
            run=uuid5(uid, f"run {after + 1}"),
            namespace=namespace,
            workflow=metadata.name or "",
            workflow_uid=uid,
            key=key_of(workflow),
            closure=closure.to_json(),
            params=params,
            steps=[NewStep(StepId(step.name), step.action[0]) for step in spec.steps or ()],
            deadline_seconds=seconds(spec.deadline) if spec.deadline else None,
            requests=requests,
        )

    async def check_agent(self, agent: Agent) -> None:
        """Raises NotNow where the Agent cannot be run as it is, or one that it can ask."""
        namespace = agent.metadata.namespace or ""
        asked = await self._agents(namespace, agent.spec.agents)
        maps = await self._config_maps(namespace, (agent.spec, *asked.values()))
        known = Known(agents=asked, config_maps=maps)
        await self._check(agent, known)
        await self._check_agents(asked, known)

    async def _check(self, manifest: Workflow | Agent, known: Known) -> None:
        problems = await check(manifest, known, self.evaluator)
        missing = set(missing_references(manifest, known))
        _refuse([problem for problem in problems if problem not in missing])
        if problems:
            raise NotNow(Standing.WAITING, c.REFERENCE_NOT_FOUND, told(problems))

    async def _check_agents(self, agents: Mapping[str, AgentSpec], known: Known) -> None:
        """An Agent that cannot be run may yet be mended, and then the Workflow begins by itself."""
        for name, spec in agents.items():
            agent = Agent(metadata={"name": name}, spec=spec)  # type: ignore[arg-type]
            if problems := await check(agent, known, self.evaluator):
                raise NotNow(Standing.WAITING, c.REFERENCE_NOT_FOUND, f"Agent `{name}`: {told(problems)}")

    async def _agents(self, namespace: str, names: Iterable[str]) -> dict[str, AgentSpec]:
        """Those of that name, and all that they can ask, as far as they are there."""
        found: dict[str, AgentSpec] = {}
        waiting = deque(names)
        while waiting:
            name = waiting.popleft()
            if name not in found and (obj := await self.kube.get(AGENTS, namespace, name)) is not None:
                found[name] = _agent(obj).spec
                waiting += found[name].agents
        return found

    async def _config_maps(self, namespace: str, specs: Iterable[ApiModel]) -> dict[str, Mapping[str, str]]:
        """Those that the specs refer to, as far as they are there."""
        found: dict[str, Mapping[str, str]] = {}
        for name in sorted({ref.name for spec in specs for ref in config_refs(spec)}):
            if (obj := await self.kube.get(CONFIG_MAPS, namespace, name)) is not None:
                found[name] = obj.get("data") or {}
        return found


def read_workflow(obj: Mapping[str, Any]) -> Workflow:
    """The Workflow, whose fields can be honoured as they stand: control fields act at once, without another run.
    Raises NotNow."""
    workflow = read(obj)
    assert isinstance(workflow, Workflow)  # noqa: S101 - the API serves no other kind at that place
    found = chain.from_iterable(defects(model, path) for path, model in supported(workflow.spec, "spec"))
    _refuse([*unsupported(workflow), *found])
    return workflow


def read(obj: Mapping[str, Any]) -> Manifest:
    """The object as its model has it. Raises NotNow where it breaks a rule that the CRD could not state."""
    try:
        return load({name: value for name, value in obj.items() if name != "status"})
    except ManifestError as error:
        too_large = any("is larger than" in str(problem) for problem in error.problems)
        reason = c.SPEC_TOO_LARGE if too_large else c.INVALID_SPEC
        raise NotNow(Standing.STALLED, reason, told(error.problems)) from None


def _refuse(wrong: Sequence[Problem]) -> None:
    if wrong:
        later = all("is not supported yet" in str(problem) for problem in wrong)
        raise NotNow(Standing.STALLED, c.NOT_SUPPORTED if later else c.INVALID_SPEC, told(wrong))


def told(problems: Sequence[Problem]) -> str:
    """The problems as one message."""
    shown = "; ".join(map(str, problems[:SHOWN]))
    return shown + (f"; and {len(problems) - SHOWN} more" if len(problems) > SHOWN else "")


def _agent(obj: Mapping[str, Any]) -> Agent:
    try:
        found = read(obj)
    except NotNow as error:
        name = obj["metadata"]["name"]
        raise NotNow(Standing.WAITING, c.REFERENCE_NOT_FOUND, f"Agent `{name}`: {error}") from None
    assert isinstance(found, Agent)  # noqa: S101 - the API serves no other kind at that place
    return found
