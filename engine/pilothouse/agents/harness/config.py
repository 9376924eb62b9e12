"""What a harness is made of."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pilothouse.agents.harness.hooks import Resources
from pilothouse.agents.queue import QueueMode
from pilothouse.agents.session import CompactionSettings, ModelRef, Projector, Summariser
from pilothouse.models.provider import ModelOptions, ModelProvider
from pilothouse.records.runs import StepId
from pilothouse.tools.tool import Tool

SystemPrompt: TypeAlias = str | Callable[[Resources], Awaitable[str]]
"""A function is asked again before each turn."""


@dataclass(frozen=True, slots=True)
class HarnessConfig:
    """`model` and all `tools` hold where the session says nothing else. `find_model` is asked for the model of a
    session, None: it has no such model. Without `compaction` the context is never compacted by itself; `summarise`
    asks the session's model where it is left out."""

    model: ModelProvider
    tools: Sequence[Tool] = ()
    system_prompt: SystemPrompt = "You are a helpful assistant."
    resources: Resources = field(default_factory=dict)
    options: ModelOptions = field(default_factory=ModelOptions)
    find_model: Callable[[ModelRef], ModelProvider | None] | None = None
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    compaction: CompactionSettings | None = None
    summarise: Summariser | None = None
    projectors: Mapping[str, Projector] = field(default_factory=dict)
    tool_calls_per_turn: int = 5
    step: StepId | None = None
