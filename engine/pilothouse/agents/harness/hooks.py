"""Where others take part in the work of a harness, and whose word holds where several do."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeAlias, TypeVar

from pydantic import JsonValue

from pilothouse.agents.errors import AgentError
from pilothouse.agents.hooks import Block, EndedCall, GatedCall, ResultPatch
from pilothouse.agents.messages import Message
from pilothouse.agents.session import BranchSummaryBody, CompactionBody, NavigationPlan, Preparation
from pilothouse.models.provider import ModelRequest
from pilothouse.records.sessions import Entry
from pilothouse.store.errors import StoreError

E = TypeVar("E")
R = TypeVar("R")

Resources: TypeAlias = Mapping[str, JsonValue]


class Hook(Generic[E, R]):
    """The handlers of one hook, asked in the order in which they were added. None says nothing. Raises AgentError
    `hook` where one fails, and what the store raises."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._handlers: list[Callable[[E], Awaitable[R | None]]] = []

    def __bool__(self) -> bool:
        return bool(self._handlers)

    def add(self, handler: Callable[[E], Awaitable[R | None]]) -> Callable[[], None]:
        """Returns what takes the handler away."""
        self._handlers.append(handler)
        return lambda: self._handlers.remove(handler)

    async def first(self, event: E) -> R | None:
        """The first word holds, and nobody is asked after it."""
        for handler in tuple(self._handlers):
            if (said := await self._ask(handler, event)) is not None:
                return said
        return None

    async def last(self, event: E) -> R | None:
        """The last word holds."""
        said = [await self._ask(handler, event) for handler in tuple(self._handlers)]
        return next((one for one in reversed(said) if one is not None), None)

    async def _ask(self, handler: Callable[[E], Awaitable[R | None]], event: E) -> R | None:
        try:
            return await handler(event)
        except (AgentError, StoreError):
            raise
        except Exception as error:
            raise AgentError("hook", f"the hook `{self._name}` failed: {error}") from error


class Chain(Hook[E, E]):
    """Each handler gets what the one before it made."""

    async def through(self, event: E) -> E:
        for handler in tuple(self._handlers):
            changed = await self._ask(handler, event)
            event = event if changed is None else changed
        return event


@dataclass(frozen=True, slots=True)
class Starting:
    """A run is about to start with these prompts."""

    prompts: Sequence[Message]
    system_prompt: str
    resources: Resources


@dataclass(frozen=True, slots=True)
class StartChange:
    """`messages` follow the prompts; `system_prompt` holds for the whole run."""

    messages: Sequence[Message] = ()
    system_prompt: str | None = None


@dataclass(frozen=True, slots=True)
class Compacting:
    preparation: Preparation
    branch: Sequence[Entry]
    instructions: str


@dataclass(frozen=True, slots=True)
class CompactionChange:
    """`cancel` ends it; a `compaction` takes the place of ours."""

    cancel: bool = False
    compaction: CompactionBody | None = None


@dataclass(frozen=True, slots=True)
class TreeChange:
    """`cancel` ends the navigation; what is not None takes the place of what was asked for."""

    cancel: bool = False
    summary: BranchSummaryBody | None = None
    instructions: str | None = None
    replace_instructions: bool | None = None
    label: str | None = None


@dataclass(frozen=True, slots=True)
class HarnessHooks:
    """The last word holds, but: any block of `tool_call` is final, and `before_provider_request` is a chain."""

    before_agent_start: Hook[Starting, StartChange] = field(default_factory=lambda: Hook("before_agent_start"))
    context: Hook[Sequence[Message], Sequence[Message]] = field(default_factory=lambda: Hook("context"))
    before_provider_request: Chain[ModelRequest] = field(default_factory=lambda: Chain("before_provider_request"))
    tool_call: Hook[GatedCall, Block] = field(default_factory=lambda: Hook("tool_call"))
    tool_result: Hook[EndedCall, ResultPatch] = field(default_factory=lambda: Hook("tool_result"))
    session_before_compact: Hook[Compacting, CompactionChange] = field(
        default_factory=lambda: Hook("session_before_compact")
    )
    session_before_tree: Hook[NavigationPlan, TreeChange] = field(default_factory=lambda: Hook("session_before_tree"))
