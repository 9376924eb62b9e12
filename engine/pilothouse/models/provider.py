"""The one protocol between the agent loop and a model."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from pilothouse.agents.messages import AssistantMessage, Message, ToolCall

FailureCode = Literal["F-ENV", "F-INP", "F-TMO", "F-RES", "F-SEC", "F-DEP", "F-UNK"]
"""The codes of the failure taxonomy that a model call can end with."""

ThinkingLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What is left at None is the provider's own default. Not every format knows `seed` and `stop`."""

    temperature: float | None = None
    top_p: float | None = None
    max_output_tokens: int | None = None
    thinking: ThinkingLevel = "off"
    seed: int | None = None
    stop: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One model call. With `response_schema`, a JSON schema, the text of the answer is to satisfy it."""

    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    options: ModelOptions = field(default_factory=ModelOptions)
    response_schema: Mapping[str, Any] | None = None

    @property
    def turn(self) -> int:
        """How many answers the conversation holds already; the same before and after a restart."""
        return sum(isinstance(message, AssistantMessage) for message in self.messages)


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why a call failed. `retryable`: the same call may succeed later. `retry_after`: seconds, as told."""

    code: FailureCode
    message: str
    retryable: bool
    status: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Start:
    partial: AssistantMessage
    type: Literal["start"] = "start"


@dataclass(frozen=True, slots=True)
class TextDelta:
    """`delta` was added to the block `partial.content[content_index]`; so for the other deltas."""

    content_index: int
    delta: str
    partial: AssistantMessage
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    content_index: int
    delta: str
    partial: AssistantMessage
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    content_index: int
    partial: AssistantMessage
    type: Literal["toolcall_start"] = "toolcall_start"


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of the arguments' JSON text; the call in `partial` has no arguments before `ToolCallEnd`."""

    content_index: int
    delta: str
    partial: AssistantMessage
    type: Literal["toolcall_delta"] = "toolcall_delta"


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    content_index: int
    tool_call: ToolCall
    partial: AssistantMessage
    type: Literal["toolcall_end"] = "toolcall_end"


Delta = TextDelta | ThinkingDelta | ToolCallStart | ToolCallDelta | ToolCallEnd


@dataclass(frozen=True, slots=True)
class Done:
    """The last event of an answer; `message.stop_reason` is stop, length or toolUse."""

    message: AssistantMessage
    type: Literal["done"] = "done"


@dataclass(frozen=True, slots=True)
class Failed:
    """The last event of a call that failed; the message holds what had arrived, and the failure in words."""

    message: AssistantMessage
    failure: ModelFailure
    type: Literal["error"] = "error"


ModelEvent = Start | Delta | Done | Failed


class ModelProvider(Protocol):
    """A model. `api` names the wire format, `provider` the service, `model` the model."""

    @property
    def api(self) -> str: ...

    @property
    def provider(self) -> str: ...

    @property
    def model(self) -> str: ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        """One call: at most one `Start`, then deltas, then exactly one `Done` or `Failed`, always the last.

        Never raises: a failure is a `Failed` event. Cancelling the task that iterates aborts the call, and
        the cancellation is raised as usual. Whoever leaves early closes it (`contextlib.aclosing`).
        """
        ...
