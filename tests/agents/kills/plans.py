"""Scripted sessions, drawn from a seed."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pilothouse.records.queues import QueueName
from pilothouse.tools.tool import ExecutionMode
from tests.agents.doubles import calls, says

LARGE = 100_000
"""Characters of a result that no row holds: it goes into a blob."""


@dataclass(frozen=True)
class Kind:
    """What a tool of the sessions is like. `raises`: it has its effect, then it fails."""

    idempotent: bool = False
    mode: ExecutionMode = "parallel"
    raises: bool = False
    size: int = 0


KINDS = {
    "post": Kind(),
    "put": Kind(idempotent=True),
    "post_alone": Kind(mode="sequential"),
    "put_alone": Kind(idempotent=True, mode="sequential"),
    "fail": Kind(raises=True),
    "dump": Kind(idempotent=True, size=LARGE),
}

MISSING = "missing"
"""A tool that a model may call and nobody has: such a call gets its result without having been begun."""


@dataclass(frozen=True)
class Plan:
    """What the model says, turn by turn. With `asks_again` the answer must be a number, and the first one is none.
    `said`: what somebody says to the agent while a call runs, by the call's id."""

    turns: Sequence[Mapping[str, Any]]
    asks_again: bool = False
    said: Mapping[str, tuple[QueueName, str]] = field(default_factory=dict)

    def repeatable(self, call: str) -> bool:
        """Whether the tool that the call of this id names promises that the call may be made again."""
        listed = [one for turn in self.turns for one in turn.get("toolCalls", ())]
        return any(one["id"] == call and KINDS[one["name"]].idempotent for one in listed)


def draw(chance: random.Random) -> Plan:
    """1 to 4 turns with 1 to 5 calls each, and the answer. Half of all sessions only have calls that may be made
    again, and half of all batches only calls that run side by side."""
    harmless = chance.random() < 0.5
    turns = [_turn(chance, number, harmless) for number in range(chance.randint(1, 4))]
    said = dict(filter(None, [_said(chance, turn) for turn in turns]))
    follow_ups = [text for queue, text in said.values() if queue is QueueName.FOLLOW_UP]
    asks_again = not follow_ups and chance.random() < 0.25
    answers = [says("none"), says("7")] if asks_again else map(says, ["done", *follow_ups])
    return Plan([*turns, *answers], asks_again, said)


def _turn(chance: random.Random, number: int, harmless: bool) -> dict[str, Any]:
    at_once = chance.random() < 0.5
    names = [name for name, kind in KINDS.items() if _fits(kind, harmless, at_once)] + [MISSING]
    chosen = chance.choices(names, [1 if name == MISSING else 3 for name in names], k=chance.randint(1, 5))
    return calls(*((f"t{number}c{place}", name, {"text": "x"}) for place, name in enumerate(chosen)))


def _said(chance: random.Random, turn: Mapping[str, Any]) -> tuple[str, tuple[QueueName, str]] | None:
    """At most one message a turn, as what is said at the same time has no order."""
    heard = [call["id"] for call in turn["toolCalls"] if call["name"] != MISSING]
    if not heard or chance.random() < 0.5:
        return None
    during, queue = chance.choice(heard), chance.choice((QueueName.STEER, QueueName.FOLLOW_UP))
    return during, (queue, f"{queue} during {during}")


def _fits(kind: Kind, harmless: bool, at_once: bool) -> bool:
    return (kind.idempotent or not harmless) and (kind.mode == "parallel" or not at_once)
