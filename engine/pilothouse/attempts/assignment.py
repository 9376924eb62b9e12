"""An agent attempt's assignment: the work, and the system prompts, wherever the Agents took them from.

On a cluster the operator stores its text as a blob of the tenant, and the Pod is told the digest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from pilothouse.api.agent import AgentSpec
from pilothouse.api.meta import KeyRef
from pilothouse.records.values import decode, encode
from pilothouse.workflows.work import AgentWork

_NUMBER = int | float


class AssignmentRefused(ValueError):  # noqa: N818 - the outcome, as its reader says it
    """A text is no assignment; the message names the field."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """The work of one attempt. `instructions` is the system prompt; `prompts` those of the Agents that can be asked, by
    name."""

    work: AgentWork
    instructions: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, work: AgentWork, text: Callable[[KeyRef], str]) -> Self:
        """The assignment of the work. `text` is that of a ConfigMap's key."""
        prompts = {name: _prompt(spec, text) for name, spec in work.agents.items()}
        return cls(work, _prompt(work.spec, text), prompts)

    def encode(self) -> bytes:
        """The JSON text. Raises ValueRefused for arguments that JSON cannot hold faithfully."""
        work = self.work
        body = {
            "agent": work.agent,
            "spec": work.spec,
            "message": work.message,
            "arguments": work.arguments,
            "timeout": work.timeout,
            "session": work.session,
            "agents": work.agents,
            "instructions": self.instructions,
            "prompts": self.prompts,
        }
        return encode(body).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The assignment of a text that `encode` made. Raises AssignmentRefused."""
        body = _Body(_object(data))
        timeout = body.take("timeout", _NUMBER | None)
        work = AgentWork(
            agent=body.take("agent", str),
            spec=body.take("spec", dict),
            message=body.take("message", str),
            arguments=body.take("arguments", dict),
            timeout=None if timeout is None else float(timeout),
            session=body.take("session", str | None),
            agents=body.take("agents", dict),
        )
        return cls(work, body.take("instructions", str), body.take("prompts", dict))


@dataclass(frozen=True, slots=True)
class _Body:
    fields: Mapping[str, Any]

    def take(self, name: str, kind: Any) -> Any:
        value = self.fields.get(name)
        if name not in self.fields or not isinstance(value, kind) or isinstance(value, bool):
            raise AssignmentRefused(f"the assignment's `{name}` is missing or of the wrong type")
        return value


def _prompt(body: Mapping[str, Any], text: Callable[[KeyRef], str]) -> str:
    prompt = AgentSpec.model_validate(body).prompt
    if prompt is None:
        return ""
    if prompt.system_from is None:
        return prompt.system or ""
    return text(prompt.system_from.config_map_key_ref)


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        body = decode(data)
    except (ValueError, RecursionError) as error:
        raise AssignmentRefused(f"the assignment is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise AssignmentRefused("the assignment is not a JSON object")
    return body
