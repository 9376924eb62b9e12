"""What the next turn of a harness will be made with: the model, how much it thinks, the tools and the prompt."""

from collections.abc import Sequence
from typing import cast, get_args

from pilothouse.agents.errors import AgentError
from pilothouse.agents.harness.config import HarnessConfig
from pilothouse.agents.session import ModelRef, SessionError, ThinkingLevelChangeBody, check_tool_names
from pilothouse.agents.session.state import state_of
from pilothouse.models.provider import ModelProvider, ThinkingLevel
from pilothouse.records.sessions import Entry
from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import Tool


class Settings:
    """`active` are the names of the tools that the model sees, None: of all; `registry` holds them. `system_prompt` is
    a hook's for the run that is on, None without one."""

    def __init__(self, config: HarnessConfig) -> None:
        self.model = config.model
        self.thinking_level: ThinkingLevel = config.options.thinking
        given = config.tools
        self._live = given if isinstance(given, ToolRegistry) else None
        self.show(given.tools if isinstance(given, ToolRegistry) else tuple(given), None)
        self.resources = config.resources
        self.system_prompt: str | None = None
        self._config = config

    def restore(self, branch: Sequence[Entry]) -> None:
        """Takes over what the branch says. Raises AgentError `invalid_argument` for a model or a tool that is not
        there, then nothing has changed."""
        state = state_of(branch)
        model = self._model_of(state.model)
        active = None if state.active_tool_names is None else self.checked(state.active_tool_names)
        self.model = model
        self.show(self.tools, active)
        said = any(entry.type == ThinkingLevelChangeBody.type for entry in branch)
        if said and state.thinking_level in get_args(ThinkingLevel):
            self.thinking_level = cast(ThinkingLevel, state.thinking_level)

    def checked(self, active: Sequence[str], tools: Sequence[Tool] | None = None) -> tuple[str, ...]:
        """Raises AgentError `invalid_argument` for a name that no tool has, or that stands there twice."""
        try:
            return check_tool_names(active, [tool.name for tool in (self.tools if tools is None else tools)])
        except SessionError as error:
            raise AgentError("invalid_argument", str(error)) from error

    def show(self, tools: tuple[Tool, ...], active: tuple[str, ...] | None) -> None:
        """From now on there are these tools, and the model sees the active ones. Raises ToolRefused."""
        whole = self._live if self._live and active is None and tools == self._live.tools else None
        self.registry = whole or ToolRegistry([tool for tool in tools if active is None or tool.name in active])
        self.tools, self.active = tools, active

    async def prompt(self) -> str:
        if self.system_prompt is not None:
            return self.system_prompt
        written = self._config.system_prompt
        return written if isinstance(written, str) else await written(self.resources)

    def _model_of(self, ref: ModelRef | None) -> ModelProvider:
        if ref is None or ref == ref_of(self.model):
            return self.model
        found = self._config.find_model(ref) if self._config.find_model else self.model
        if found is None:
            raise AgentError("invalid_argument", f"there is no model `{ref.model_id}` of `{ref.provider}`")
        return found


def ref_of(model: ModelProvider) -> ModelRef:
    return ModelRef(model.provider, model.model)
