"""Compaction as a harness does it: asked for, or due before a request."""

import json
from collections.abc import Sequence

from pilothouse.agents.errors import AgentError
from pilothouse.agents.harness.config import HarnessConfig
from pilothouse.agents.harness.hooks import Compacting, CompactionChange, HarnessHooks
from pilothouse.agents.harness.settings import Settings
from pilothouse.agents.messages import Message
from pilothouse.agents.session import (
    CompactionError,
    CompactionSettings,
    ModelSummariser,
    SessionTree,
    compact,
    context_tokens,
    estimate,
    prepare,
    should_compact,
)
from pilothouse.models.provider import ToolSpec
from pilothouse.records.sessions import Entry


class Compactor:
    def __init__(self, tree: SessionTree, config: HarnessConfig, settings: Settings, hooks: HarnessHooks) -> None:
        self._tree = tree
        self._config = config
        self._settings = settings
        self._hooks = hooks

    def due(self, messages: Sequence[Message], compacted: int, system: str) -> bool:
        """Whether the messages are too many for another request, with all that goes with them. The first `compacted`
        report on a context that is gone."""
        if self._config.compaction is None:
            return False
        tokens = context_tokens(messages, compacted)
        if tokens == estimate(messages):  # no answer reported what the prompt and the tools take
            tokens += _overhead(system, self._settings.registry.specs)
        return should_compact(tokens, self._config.compaction)

    async def run(self, instructions: str = "") -> tuple[Entry, bool]:
        """The entry, and whether it came from a hook. Raises AgentError `compaction`; then nothing was written."""
        settings = self._config.compaction
        if settings is None:
            raise AgentError("invalid_state", "the harness has no settings for a compaction")
        try:
            change = await self._asked(settings, instructions)
            if change and change.compaction:
                body = change.compaction.model_copy(update={"from_hook": True})
                return (await self._tree.add(body))[0], True
            summarise = self._config.summarise or ModelSummariser(self._settings.model)
            return await compact(self._tree, summarise, settings, instructions, self._config.projectors), False
        except CompactionError as error:
            raise AgentError("compaction", str(error)) from error

    async def _asked(self, settings: CompactionSettings, instructions: str) -> CompactionChange | None:
        if not self._hooks.session_before_compact:
            return None
        branch = self._tree.branch()
        event = Compacting(prepare(branch, settings, self._config.projectors), branch, instructions)
        change = await self._hooks.session_before_compact.last(event)
        if change and change.cancel:
            raise AgentError("compaction", "a hook cancelled the compaction")
        return change


def _overhead(system: str, tools: Sequence[ToolSpec]) -> int:
    told = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools]
    return (len(system) + len(json.dumps(told, default=dict))) // 4
