"""What a harness tells beside the events of the loop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias
from uuid import UUID

from pilothouse.agents.events import AgentEvent
from pilothouse.agents.harness.hooks import Resources
from pilothouse.agents.messages import Message
from pilothouse.agents.session import ModelRef
from pilothouse.models.provider import ThinkingLevel


@dataclass(frozen=True, slots=True)
class QueueUpdate:
    """What waits now, after something was queued, taken or cleared."""

    steer: Sequence[Message]
    follow_up: Sequence[Message]
    next_turn: Sequence[Message]

    type: ClassVar = "queue_update"


@dataclass(frozen=True, slots=True)
class SavePoint:
    """A turn is in the session, and so is what was to be written meanwhile."""

    had_pending_mutations: bool

    type: ClassVar = "save_point"


@dataclass(frozen=True, slots=True)
class Aborted:
    """An abort is over; the messages that waited are returned to whoever aborted."""

    cleared_steer: Sequence[Message]
    cleared_follow_up: Sequence[Message]

    type: ClassVar = "abort"


@dataclass(frozen=True, slots=True)
class Settled:
    """A run is over and everything of it is in the session."""

    next_turn_count: int

    type: ClassVar = "settled"


@dataclass(frozen=True, slots=True)
class SessionCompact:
    entry: UUID
    from_hook: bool

    type: ClassVar = "session_compact"


@dataclass(frozen=True, slots=True)
class SessionTreeMoved:
    old_leaf: UUID | None
    new_leaf: UUID | None
    summary: UUID | None

    type: ClassVar = "session_tree"


@dataclass(frozen=True, slots=True)
class ModelUpdate:
    model: ModelRef

    type: ClassVar = "model_update"


@dataclass(frozen=True, slots=True)
class ThinkingLevelUpdate:
    thinking_level: ThinkingLevel

    type: ClassVar = "thinking_level_update"


@dataclass(frozen=True, slots=True)
class ToolsUpdate:
    """`active` is None where all are."""

    tools: Sequence[str]
    active: Sequence[str] | None

    type: ClassVar = "tools_update"


@dataclass(frozen=True, slots=True)
class ResourcesUpdate:
    resources: Resources

    type: ClassVar = "resources_update"


HarnessEvent: TypeAlias = (
    AgentEvent
    | QueueUpdate
    | SavePoint
    | Aborted
    | Settled
    | SessionCompact
    | SessionTreeMoved
    | ModelUpdate
    | ThinkingLevelUpdate
    | ToolsUpdate
    | ResourcesUpdate
)
