"""The state that a branch ends in: which model, how much thinking, which tools.

It is read off the whole branch: a compaction shortens what the model sees, and changes nothing of this.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pilothouse.agents.session.entries import (
    ActiveToolsChangeBody,
    MessageBody,
    ModelChangeBody,
    ThinkingLevelChangeBody,
)
from pilothouse.agents.session.errors import SessionError
from pilothouse.records.sessions import Entry


@dataclass(frozen=True, slots=True)
class ModelRef:
    provider: str
    model_id: str


@dataclass(frozen=True, slots=True)
class SessionState:
    """`model` is None before anything was said of one, `active_tool_names` where they were never chosen."""

    model: ModelRef | None = None
    thinking_level: str = "off"
    active_tool_names: tuple[str, ...] | None = None


def state_of(branch: Sequence[Entry]) -> SessionState:
    """The last word on each matter."""
    level = next(_fields(branch, ThinkingLevelChangeBody.type, "thinkingLevel"), "off")
    tools = next(_fields(branch, ActiveToolsChangeBody.type, "activeToolNames"), None)
    return SessionState(_model(branch), level, None if tools is None else tuple(tools))


def check_tool_names(names: Sequence[str], known: Collection[str]) -> tuple[str, ...]:
    """The names, if a session can make them its active tools. Raises SessionError for one that is not known or
    stands there twice."""
    unknown = [name for name in names if name not in known]
    if unknown:
        there = ", ".join(sorted(known)) or "none"
        raise SessionError("invalid_argument", f"there is no tool `{'`, `'.join(unknown)}`; the tools are: {there}")
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise SessionError("invalid_argument", f"the tool `{'`, `'.join(twice)}` is named twice")
    return tuple(names)


def _model(branch: Sequence[Entry]) -> ModelRef | None:
    """An answer says which model it is from, so it counts as a change of the model."""
    for entry in reversed(branch):
        if entry.type == ModelChangeBody.type:
            return ModelRef(entry.body["provider"], entry.body["modelId"])
        if entry.type == MessageBody.type and (message := entry.body["message"])["role"] == "assistant":
            return ModelRef(message["provider"], message["model"])
    return None


def _fields(branch: Sequence[Entry], kind: str, field: str) -> Iterator[str]:
    return (entry.body[field] for entry in reversed(branch) if entry.type == kind)
