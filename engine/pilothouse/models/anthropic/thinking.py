"""How deep a Claude model is to think, as its generation takes it."""

import re

from pilothouse.models.provider import ThinkingLevel
from pilothouse.models.wire import Json

ANSWER_TOKENS = 8192
"""The output limit where the Agent sets none; the format demands one."""

_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 23552}
"""In tokens. With `ANSWER_TOKENS` the largest stays within the 32,000 tokens of the smallest model that thinks."""

_EFFORTS = {"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}

_FIRST_GENERATIONS = re.compile(r"claude-(?:[23](?!\d)|[a-z]+-4(?![.-](?:[6-9]|[1-9]\d)(?!\d)))")


def depth(model: str, level: ThinkingLevel, max_tokens: int | None) -> Json:
    """The fields of a request that say it. Claude up to 4.5 takes a budget, and so do the servers that offer other
    models in this format; the budget comes on top of `max_tokens`, which counts it in. Later ones refuse budgets:
    they judge by themselves, and take an effort."""
    limit = max_tokens or ANSWER_TOKENS
    if level == "off":
        return {"max_tokens": limit}
    if "claude" in model and not _FIRST_GENERATIONS.search(model):
        thinking = {"type": "adaptive", "display": "summarized"}
        return {"max_tokens": limit, "thinking": thinking, "output_config": {"effort": _EFFORTS[level]}}
    budget = _BUDGETS[level]
    return {"max_tokens": limit + budget, "thinking": {"type": "enabled", "budget_tokens": budget}}
