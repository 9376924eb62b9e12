"""Going to another place of the session, as a harness does it: a hook may stop it, or say otherwise."""

from dataclasses import dataclass, replace
from uuid import UUID

from pilothouse.agents.errors import AgentError
from pilothouse.agents.harness.config import HarnessConfig
from pilothouse.agents.harness.hooks import HarnessHooks, TreeChange
from pilothouse.agents.harness.settings import Settings
from pilothouse.agents.session import (
    BranchSummaryBody,
    BranchSummarySettings,
    ModelSummariser,
    Navigation,
    NavigationPlan,
    SessionError,
    SessionTree,
    SummaryError,
    navigate,
    plan_navigation,
    summarise_branch,
)

SUMMARY_BUDGET = 100_000
"""Tokens of a branch that are summarised, where the harness has no compaction to say what its model takes."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to go. With `summarise`, what happened on the branch that is left is told there; `instructions` are a
    person's for that, in place of ours with `replace_instructions`."""

    target: UUID
    summarise: bool = False
    instructions: str = ""
    replace_instructions: bool = False
    label: str | None = None


class Mover:
    def __init__(self, tree: SessionTree, config: HarnessConfig, settings: Settings, hooks: HarnessHooks) -> None:
        self._tree = tree
        self._config = config
        self._settings = settings
        self._hooks = hooks

    async def go(self, to: Destination) -> Navigation | None:
        """None where a hook cancelled it; then, and where it raises AgentError, the leaf has not moved."""
        try:
            plan = plan_navigation(self._tree, to.target)
        except SessionError as error:
            raise AgentError("invalid_argument", str(error)) from error
        change = await self._hooks.session_before_tree.last(plan) or TreeChange()
        if change.cancel:
            return None
        to = _changed(to, change)
        summary = change.summary.model_copy(update={"from_hook": True}) if change.summary else None
        if summary is None and to.summarise:
            summary = await self._summary(plan, to)
        return await navigate(self._tree, plan, summary, to.label)

    async def _summary(self, plan: NavigationPlan, to: Destination) -> BranchSummaryBody | None:
        window = self._config.compaction
        settings = BranchSummarySettings(
            budget=window.threshold if window else SUMMARY_BUDGET,
            instructions=to.instructions,
            replace_instructions=to.replace_instructions,
        )
        summarise = self._config.summarise or ModelSummariser(self._settings.model)
        try:
            return await summarise_branch(plan, summarise, settings)
        except SummaryError as error:
            raise AgentError("branch_summary", f"the branch was not summarised: {error}") from error


def _changed(to: Destination, change: TreeChange) -> Destination:
    words = {name: getattr(change, name) for name in ("instructions", "replace_instructions", "label")}
    return replace(to, **{name: word for name, word in words.items() if word is not None})
