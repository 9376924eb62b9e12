"""What people say to an agent beside its prompt: messages that wait in a session's queues."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class QueueName(StrEnum):
    """When the messages of a queue are delivered: `steer` before the next answer, `followUp` where the agent would
    end, `nextTurn` before the next prompt."""

    STEER = "steer"
    FOLLOW_UP = "followUp"
    NEXT_TURN = "nextTurn"


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A message in its wire form, delivered once. `seq` is the order of acceptance within the session."""

    id: UUID
    queue: QueueName
    message: Mapping[str, Any]
    seq: int
    at: datetime
