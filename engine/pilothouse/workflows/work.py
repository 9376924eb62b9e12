"""Work: what a heavy step amounts to once its expressions are evaluated, ready to be carried out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pilothouse.records.values import JSON


@dataclass(frozen=True, slots=True)
class ValueSource:
    """Where a value comes from when the work starts: a key of a ConfigMap or of a Secret."""

    kind: str
    name: str
    key: str


Text: TypeAlias = str | ValueSource
"""A text, or where to take it from. Secrets stay references until the process that needs them starts."""


@dataclass(frozen=True, slots=True)
class CommandWork:
    """A command: an argument vector that no shell sees, its environment and the files laid beside it.

    `timeout` is in seconds. `image` is a user's image, None for ours. `confined` takes the network away and bounds
    the rest, as `commands.confine` says.
    """

    argv: Sequence[str]
    env: Mapping[str, Text] = field(default_factory=dict)
    files: Mapping[str, Text] = field(default_factory=dict)
    timeout: float | None = None
    image: str | None = None
    confined: bool = False


@dataclass(frozen=True, slots=True)
class AgentWork:
    """An agent's turn of work: the Agent's frozen spec (as its manifest), the message and the arguments. `session` is
    the name of the conversation that it continues, None where the step has one of its own. `agents` are the specs of
    those that it can ask, directly or through others, by name."""

    agent: str
    spec: Mapping[str, Any]
    message: str
    arguments: Mapping[str, JSON]
    timeout: float | None = None
    session: str | None = None
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


Work: TypeAlias = CommandWork | AgentWork
