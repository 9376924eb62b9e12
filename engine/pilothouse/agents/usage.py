"""Adding up what several model calls used."""

from collections.abc import Iterable

from pilothouse.agents.messages import Cost, Usage

_COUNTS = tuple(name for name in Usage.model_fields if name != "cost")


def total_of(usages: Iterable[Usage]) -> Usage:
    """The sum, field by field."""
    all_of = tuple(usages)
    tokens = {name: sum(getattr(usage, name) for usage in all_of) for name in _COUNTS}
    cost = {name: sum(getattr(usage.cost, name) for usage in all_of) for name in Cost.model_fields}
    return Usage(**tokens, cost=Cost(**cost))
