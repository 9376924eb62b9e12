"""`invokeAgent`: gives an Agent a message and values for its inputs."""

from typing import Any, ClassVar

from pilothouse.api.actions import InvokeAgent
from pilothouse.api.fields import seconds
from pilothouse.api.workflow import Step
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.values import JSON
from pilothouse.workflows.expressions.template import as_text
from pilothouse.workflows.params import ParamError, bind
from pilothouse.workflows.reach import reachable
from pilothouse.workflows.scope import Scope
from pilothouse.workflows.steps.kind import Beginning, StepKind
from pilothouse.workflows.work import AgentWork


class InvokeAgentKind(StepKind[InvokeAgent]):
    """Its effects are rows of the agent's session, so after a loss it goes on from there."""

    key = "invokeAgent"
    outputs: ClassVar = frozenset({"text", "data", "usage", "turns", "session"})
    durable = True

    async def begin(self, step: Step, action: InvokeAgent, scope: Scope) -> Beginning:
        body = await self.rendered(action, scope)
        name = action.agent_ref.name
        spec = scope.agents[name]
        given: Any = body.get("arguments", [])
        return AgentWork(
            agent=name,
            spec=spec.manifest(),
            message=as_text(body.get("message", "")),
            arguments=_bind(name, spec.inputs, {entry["name"]: entry["value"] for entry in given}),
            timeout=seconds(step.timeout) if step.timeout else None,
            session=action.session,
            agents={each: asked.manifest() for each, asked in reachable(spec.agents, scope.agents).items()},
        )


def _bind(agent: str, inputs: Any, given: dict[str, JSON]) -> dict[str, JSON]:
    try:
        return bind(inputs, given)
    except ParamError as error:
        raise Failed(FailureCode.INP, f"Agent `{agent}`: {error}") from None
