"""What a harness is made of."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pilothouse.agents.harness.hooks import Resources
from pilothouse.agents.hooks import GetMessages, Hooks, ShouldStopAfterTurn
from pilothouse.agents.queue import QueueMode
from pilothouse.agents.session import CompactionSettings, ModelRef, Projector, Summariser
from pilothouse.models.provider import ModelOptions, ModelProvider
from pilothouse.records.runs import StepId
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import Tool

SystemPrompt: TypeAlias = str | Callable[[Resources], Awaitable[str]]
"""A function is asked again before each turn."""

_NO_HOOKS = Hooks()


@dataclass(frozen=True, slots=True)
class HarnessConfig:
    """`model` and all `tools` hold where the session says nothing else; a registry's tools may change while the harness
    works. `find_model` is asked for the model of a session, None: it has no such model. Without `compaction` the
    context is never compacted by itself; `summarise` asks the session's model where it is left out. The last two are
    the loop's hooks; follow-ups are asked for where no queue has any."""

    model: ModelProvider
    tools: Sequence[Tool] | ToolRegistry = ()
    system_prompt: SystemPrompt = "You are a helpful assistant."
    resources: Resources = field(default_factory=dict)
    options: ModelOptions = field(default_factory=ModelOptions)
    find_model: Callable[[ModelRef], ModelProvider | None] | None = None
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    compaction: CompactionSettings | None = None
    summarise: Summariser | None = None
    projectors: Mapping[str, Projector] = field(default_factory=dict)
    response_schema: Mapping[str, Any] | None = None
    tool_calls_per_turn: int = 5
    step: StepId | None = None
    should_stop_after_turn: ShouldStopAfterTurn = _NO_HOOKS.should_stop_after_turn
    get_follow_up_messages: GetMessages = _NO_HOOKS.get_follow_up_messages
