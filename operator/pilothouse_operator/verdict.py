"""Verdicts: where an object stands, and the conditions and status that say so. Pure.

`Ready` always stands; `Reconciling` and `Stalled` only while True (kstatus). The rules are those of
`pilothouse.api.conditions.check_object`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any

from pilothouse.api import conditions as c

MESSAGE_LIMIT = 1024
"""Bytes in JSON of a condition's message; the schema takes as many characters."""


class Standing(Enum):
    """What an object's newest generation has come to."""

    READY = "ready"
    """It holds; of a Workflow: its latest run succeeded."""
    WORKING = "working"
    """Work on it is under way."""
    WAITING = "waiting"
    """Nothing is done now, and it goes on by itself, or when something else changes."""
    UNKNOWN = "unknown"
    """It cannot be told now."""
    STALLED = "stalled"
    """Nothing more happens until someone changes something."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where an object stands. `reason` is one of `pilothouse.api.conditions`."""

    standing: Standing
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One condition that is to stand."""

    type: str
    status: str
    reason: str
    message: str = ""


_READY = {
    Standing.READY: "True",
    Standing.WORKING: "Unknown",
    Standing.WAITING: "False",
    Standing.UNKNOWN: "Unknown",
    Standing.STALLED: "False",
}


def ready(verdict: Verdict) -> list[Said]:
    """`Ready`, and beside it what is true of the verdict."""
    said = [Said(c.READY, _READY[verdict.standing], verdict.reason, verdict.message)]
    if verdict.standing in (Standing.WORKING, Standing.WAITING):
        said.append(Said(c.RECONCILING, "True", verdict.reason, verdict.message))
    if verdict.standing is Standing.STALLED:
        said.append(Said(c.STALLED, "True", verdict.reason, verdict.message))
    return said


def saying(verdict: Verdict, before: Mapping[str, Any], generation: int, now: datetime) -> dict[str, Any]:
    """The status that says the verdict, and all else as it did before."""
    was = before.get("conditions") or []
    kept = [each for each in was if each["type"] not in (c.READY, c.RECONCILING, c.STALLED)]
    said = conditions(ready(verdict), was, generation, now)
    return {**before, "observedGeneration": generation, "conditions": [*said, *kept]}


def conditions(
    said: Iterable[Said], before: Sequence[Mapping[str, Any]], generation: int, now: datetime
) -> list[dict[str, Any]]:
    """The list as it stands in a status. A condition whose status does not change keeps the time of its last change."""
    known = {condition["type"]: condition for condition in before}
    return [_condition(each, known.get(each.type), generation, now) for each in said]


def _condition(said: Said, before: Mapping[str, Any] | None, generation: int, now: datetime) -> dict[str, Any]:
    since = before.get("lastTransitionTime") if before and before.get("status") == said.status else None
    return {
        "type": said.type,
        "status": said.status,
        "reason": said.reason,
        "message": cut(said.message, MESSAGE_LIMIT),
        "lastTransitionTime": since or timestamp(now),
        "observedGeneration": generation,
    }


def cut(text: str, limit: int) -> str:
    """The beginning of the text that takes at most so many bytes in JSON, where a character takes up to six."""
    cut = text[:limit]
    while (over := len(json.dumps(cut, ensure_ascii=False).encode("utf-8", "replace")) - len('""') - limit) > 0:
        cut = cut[: -(over // 6 + 1)]
    return cut


def timestamp(at: datetime) -> str:
    """As Kubernetes writes it: UTC, to the second."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
