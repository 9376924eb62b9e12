"""Which Agents an Agent can ask, directly or through others."""

from collections.abc import Iterable, Mapping

from pilothouse.api.agent import AgentSpec
from pilothouse.records.failures import Failed, FailureCode


def reachable(names: Iterable[str], agents: Mapping[str, AgentSpec]) -> dict[str, AgentSpec]:
    """The named Agents, and all that they can ask. Raises Failed(F-ENV) naming one that is missing."""
    found: dict[str, AgentSpec] = {}
    waiting = dict.fromkeys(names, "")
    while waiting:
        name, asking = waiting.popitem()
        if name not in agents:
            raise Failed(FailureCode.ENV, f"there is no Agent `{name}`{asking}")
        found[name] = agents[name]
        more = (each for each in agents[name].agents if each not in found)
        waiting |= dict.fromkeys(more, f", which Agent `{name}` has as a tool")
    return found
