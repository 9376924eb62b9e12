"""An agent as a tool of another one."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import JsonValue

from pilothouse.agents.definition import Definition, make_task
from pilothouse.agents.delegation.account import Account
from pilothouse.agents.delegation.origin import Origin
from pilothouse.agents.events import AgentEvent, Emit, MessageEnd
from pilothouse.agents.messages import AssistantMessage, Usage
from pilothouse.agents.task import AgentResult, AgentTask
from pilothouse.api.params import Param
from pilothouse.records.failures import OUTCOME_UNKNOWN, Failed, Failure
from pilothouse.records.sessions import child_session
from pilothouse.tools.names import legal_name
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult

MAX_DEPTH = 3
"""Agents below the step's own one: the last of them may ask no further one."""

Ask: TypeAlias = Callable[[Definition, AgentTask, Emit, Origin], Awaitable[AgentResult]]


@dataclass(frozen=True, slots=True)
class Caller:
    """The agent that has the tool: what it works on, what it has left, and how many agents stand above it."""

    agent: str
    task: AgentTask
    account: Account
    depth: int


class AgentTool:
    """Asks the agent, in a session that belongs to the call: a call that is made again goes on in it, so it is
    idempotent. What the agent used is the result's `usage`. Its failure is an error result, but for an effect of
    unknown outcome: that is the caller's failure, too."""

    idempotent = True
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, definition: Definition, caller: Caller, ask: Ask) -> None:
        spec = definition.spec
        self.name = legal_name(definition.name)
        self.description = spec.description or f"Asks the agent {definition.name}."
        self.parameters = _parameters(spec.inputs)
        self._definition = definition
        self._caller = caller
        self._ask = ask

    async def execute(self, call: ToolInvocation) -> ToolResult:
        if self._caller.depth >= MAX_DEPTH:
            text = f"Not asked: an agent that is {MAX_DEPTH} calls below the step's own may ask no further one."
            return ToolResult.of(text, {"error": "DepthLimit"}, is_error=True)
        try:
            result = await self._ask(self._definition, self._task(call), _telling(call), self._origin(call))
        except Failed as error:
            result = AgentResult({}, error.failure)
        return self._result(result)

    def _task(self, call: ToolInvocation) -> AgentTask:
        caller = self._caller.task
        task = make_task(
            self._definition.spec,
            session=child_session(caller.session, call.turn, call.ordinal),
            step=caller.step,
            attempt=caller.attempt,
            message=str(call.arguments["message"]),
            arguments=_bound(self._definition.spec.inputs, call.arguments.get("arguments")),
            instructions=self._definition.instructions,
        )
        return replace(task, limits=self._caller.account.within(task.limits))

    def _origin(self, call: ToolInvocation) -> Origin:
        caller = self._caller
        session, depth = caller.task.session, caller.depth + 1
        return Origin(caller.agent, session, call.turn, call.ordinal, call.id, depth, caller.account)

    def _result(self, result: AgentResult) -> ToolResult:
        outputs, failure = result.outputs, result.failure
        usage = Usage.model_validate(outputs["usage"]) if "usage" in outputs else None
        told = {name: outputs[name] for name in ("session", "turns") if name in outputs}
        if failure is None:
            return replace(ToolResult.of(_answer(outputs), told), usage=usage)
        if failure.reason == OUTCOME_UNKNOWN:
            raise Failed(failure.code, f"in the agent `{self._definition.name}`: {failure.message}", failure.reason)
        details = told | {"error": failure.reason or failure.code.value, "code": failure.code.value}
        return replace(ToolResult.of(self._failed(failure, outputs), details, is_error=True), usage=usage)

    def _failed(self, failure: Failure, outputs: Mapping[str, JsonValue]) -> str:
        said = outputs.get("text")
        text = f"The agent `{self._definition.name}` failed: {failure}"
        return f"{text}\n\nThe last that it said:\n{said}" if said else text


def _telling(call: ToolInvocation) -> Emit:
    """What the agent says on its way is a partial result."""

    async def tell(event: AgentEvent) -> None:
        if isinstance(event, MessageEnd) and isinstance(event.message, AssistantMessage) and event.message.text:
            await call.on_update(ToolResult.of(event.message.text))

    return tell


def _answer(outputs: Mapping[str, JsonValue]) -> str:
    return json.dumps(outputs["data"], ensure_ascii=False) if "data" in outputs else str(outputs["text"])


def _parameters(inputs: tuple[Param, ...]) -> Mapping[str, Any]:
    """A message, and the agent's inputs under `arguments` where it has some."""
    about = "What the agent is to do, with all that it must know: it sees nothing of this conversation."
    message = {"type": "string", "description": about}
    if not inputs:
        return _object({"message": message}, ["message"])
    needed = [param.name for param in inputs if param.required and not _has_default(param)]
    arguments = _object({param.name: _schema(param) for param in inputs}, needed)
    return _object({"message": message, "arguments": arguments}, ["message", *(["arguments"] if needed else [])])


def _object(properties: Mapping[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _schema(param: Param) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": param.type}
    if param.description:
        schema["description"] = param.description
    if param.enum is not None:
        schema["enum"] = list(param.enum)
    if _has_default(param):
        schema["default"] = param.default
    return schema


def _bound(inputs: tuple[Param, ...], given: JsonValue) -> dict[str, JsonValue]:
    """The arguments, which fit their schema, and the defaults of those left out, in the order of the inputs."""
    values = {param.name: param.default for param in inputs if _has_default(param)}
    values |= given if isinstance(given, dict) else {}
    return {param.name: values[param.name] for param in inputs if param.name in values}


def _has_default(param: Param) -> bool:
    return "default" in param.model_fields_set
