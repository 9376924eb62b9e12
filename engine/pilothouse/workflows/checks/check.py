"""The one function that says what schemas and CEL rules cannot: whether an object makes sense as a whole."""

from collections.abc import Iterator
from itertools import chain

from pilothouse.api.agent import Agent, AgentSpec
from pilothouse.api.pack import Pack
from pilothouse.api.problem import Problem
from pilothouse.api.suggestion import suggestion
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow, WorkflowSpec
from pilothouse.governance.domains import DomainGate
from pilothouse.tools.names import BUILTIN_NAMES
from pilothouse.tools.schema import Schema, SchemaRefused
from pilothouse.workflows.checks.fields import defects
from pilothouse.workflows.checks.references import Known, missing_references
from pilothouse.workflows.checks.support import supported, unsupported
from pilothouse.workflows.checks.values import bad_arguments, misfits
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.planner import plan_problems


async def check(manifest: Workflow | Agent | Pack | ToolApproval, known: Known, evaluator: Evaluator) -> list[Problem]:
    """Every defect of an object whose fields are valid one by one, each once, with its exact path.

    Checked: that all it asks for is supported; that what it refers to exists, as far as it is known; of a Workflow
    the graph, every expression, params, arguments, branches, files and times; of an Agent its inputs, tools,
    outputs schema and script.
    """
    problems = unsupported(manifest)
    if isinstance(manifest, Workflow):
        problems += await _workflow(manifest, known, evaluator)
    elif isinstance(manifest, Agent):
        problems += _agent(manifest.spec)
    if isinstance(manifest, Workflow | Agent):
        problems += missing_references(manifest, known)
        problems += chain.from_iterable(defects(model, path) for path, model in supported(manifest.spec, "spec"))
    return list(dict.fromkeys(problems))


async def _workflow(workflow: Workflow, known: Known, evaluator: Evaluator) -> list[Problem]:
    spec = workflow.spec
    planning = await plan_problems(spec, evaluator)
    return [*misfits(spec.params, "spec.params"), *_arguments(spec, known), *planning]


def _arguments(spec: WorkflowSpec, known: Known) -> Iterator[Problem]:
    for index, step in enumerate(spec.steps or ()):
        action = step.invoke_agent
        agent = (known.agents or {}).get(action.agent_ref.name) if action is not None else None
        if action is not None and agent is not None:
            where = f"spec.steps[{index}].invokeAgent.arguments"
            yield from bad_arguments(agent.inputs, action.arguments, action.agent_ref.name, where)


def _agent(spec: AgentSpec) -> Iterator[Problem]:
    yield from misfits(spec.inputs, "spec.inputs")
    yield from _tools(spec)
    yield from _servers(spec)
    yield from _agents(spec)
    yield from _domains(spec)
    if spec.outputs is not None:
        try:
            Schema(spec.outputs.schema_)
        except SchemaRefused as error:
            yield Problem("spec.outputs.schema", f"is no valid JSON schema: {error}")


def _servers(spec: AgentSpec) -> Iterator[Problem]:
    """A program in the sandbox has no credential; what it has, every other tool there could read."""
    seen: dict[str, int] = {}
    for index, server in enumerate(tool.mcp for tool in spec.tools):
        where = f"spec.tools[{index}].mcp"
        if server is None:
            continue
        if server.name in seen:
            yield Problem(f"{where}.name", f"the MCP server `{server.name}` is listed at [{seen[server.name]}] already")
        seen.setdefault(server.name, index)
        for place, variable in enumerate(server.env):
            if variable.value_from is not None:
                yield Problem(f"{where}.env[{place}].valueFrom", "is not supported yet")
        for place, header in enumerate(server.headers):
            if header.value_from is not None and header.value_from.secret_key_ref is None:
                yield Problem(f"{where}.headers[{place}].valueFrom.configMapKeyRef", "is not supported yet")


def _domains(spec: AgentSpec) -> Iterator[Problem]:
    try:
        DomainGate.of(spec.governance.domains if spec.governance else None)
    except ValueError as error:
        yield Problem("spec.governance.domains", str(error))


def _agents(spec: AgentSpec) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, ref in enumerate(tool.agent_ref for tool in spec.tools):
        if ref is None:
            continue
        if ref.name in seen:
            where = f"spec.tools[{index}].agentRef.name"
            yield Problem(where, f"the Agent `{ref.name}` is listed at [{seen[ref.name]}] already")
        seen.setdefault(ref.name, index)


def _tools(spec: AgentSpec) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, tool in enumerate(spec.tools):
        where, name = f"spec.tools[{index}].builtin", tool.builtin
        if name is None:
            continue
        if name not in BUILTIN_NAMES:
            yield Problem(where, f"there is no built-in tool `{name}`{suggestion(name, BUILTIN_NAMES)}")
        elif name in seen:
            yield Problem(where, f"the tool `{name}` is listed at [{seen[name]}] already")
        seen.setdefault(name, index)
