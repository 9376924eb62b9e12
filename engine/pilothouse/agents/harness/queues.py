"""The queues of a harness: what is said to an agent while it is at work, or before its next prompt."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias
from uuid import UUID

from pilothouse.agents.errors import AgentError
from pilothouse.agents.journal import Inbox
from pilothouse.agents.messages import Message, MessageError, UserMessage, from_wire
from pilothouse.agents.queue import MessageQueue, QueueMode
from pilothouse.agents.session import SessionTree
from pilothouse.records import queues
from pilothouse.records.queues import QueueItem

QueueName: TypeAlias = Literal["steer", "followUp", "nextTurn"]


class Queues(Inbox, Protocol):
    """First in, first out, each by itself. What is taken stays at the head until it is delivered or given back."""

    async def put(self, queue: QueueName, message: Message) -> None: ...

    async def waiting(self, queue: QueueName) -> Sequence[Message]:
        """Without those that are taken."""
        ...

    async def take(self, queue: QueueName, mode: QueueMode) -> Sequence[Message]: ...

    async def give_back(self) -> None:
        """What is taken waits again."""
        ...

    async def clear(self, queue: QueueName) -> Sequence[Message]:
        """Returns what waited."""
        ...


class MemoryQueues:
    """Queues that end with the process."""

    def __init__(self) -> None:
        self._queues: dict[QueueName, MessageQueue] = {
            "steer": MessageQueue(),
            "followUp": MessageQueue(),
            "nextTurn": MessageQueue(),
        }

    async def put(self, queue: QueueName, message: Message) -> None:
        self._queues[queue].put(message)

    async def waiting(self, queue: QueueName) -> Sequence[Message]:
        return self._queues[queue].waiting

    async def take(self, queue: QueueName, mode: QueueMode) -> Sequence[Message]:
        self._queues[queue].mode = mode
        return self._queues[queue].take()

    def items(self, messages: Sequence[Message]) -> Sequence[UUID]:
        return ()

    async def withdrawn(self, items: Sequence[UUID]) -> bool:
        return False

    async def delivered(self, messages: Sequence[Message]) -> None:
        for message in messages:
            for queue in self._queues.values():
                queue.delivered(message)

    async def give_back(self) -> None:
        for queue in self._queues.values():
            queue.give_back()

    async def clear(self, queue: QueueName) -> Sequence[Message]:
        return self._queues[queue].clear()


@dataclass(frozen=True, slots=True)
class _Waiting:
    item: QueueItem
    message: Message


class StoredQueues:
    """The queues of a session in the store, which others fill while the agent is at work.

    They are read where the last write of the session told that something waits, so a turn in which nobody says anything
    asks nothing. What comes later waits for the next look; an attempt cannot succeed before it was delivered.
    """

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self._waiting: list[_Waiting] = []
        self._taken: list[_Waiting] = []

    async def put(self, queue: QueueName, message: Message) -> None:
        """Raises AgentError `invalid_state`: a message is accepted by the store, outside of the run."""
        raise AgentError("invalid_state", "what waits for this session is in the store; enqueue the message there")

    async def waiting(self, queue: QueueName) -> Sequence[Message]:
        return [one.message for one in self._of(queue)]

    async def take(self, queue: QueueName, mode: QueueMode) -> Sequence[Message]:
        if self._tree.waiting and queue != "followUp":  # that is asked for right after `steer`, where none was there
            await self._read()
        taken = self._of(queue)[: None if mode == "all" else 1]
        self._taken += taken
        return [one.message for one in taken]

    def items(self, messages: Sequence[Message]) -> Sequence[UUID]:
        return [one.item.id for one in self._taken if _holds(messages, one.message)]

    async def withdrawn(self, items: Sequence[UUID]) -> bool:
        await self._read()
        return not set(items) <= {one.item.id for one in self._waiting}

    async def delivered(self, messages: Sequence[Message]) -> None:
        self._waiting = [one for one in self._waiting if not _holds(messages, one.message)]
        self._taken = [one for one in self._taken if not _holds(messages, one.message)]

    async def give_back(self) -> None:
        self._taken.clear()

    async def clear(self, queue: QueueName) -> Sequence[Message]:
        cleared = await self._tree.store.clear(self._tree.id, [queues.QueueName(queue)])
        gone = {item.id for item in cleared}
        self._waiting = [one for one in self._waiting if one.item.id not in gone]
        return [_message(item) for item in cleared]

    def _of(self, queue: QueueName) -> Sequence[_Waiting]:
        taken = {one.item.id for one in self._taken}
        return [one for one in self._waiting if one.item.queue == queue and one.item.id not in taken]

    async def _read(self) -> None:
        """A message that is known keeps its identity."""
        known = {one.item.id: one for one in self._waiting}
        items = await self._tree.store.queued(self._tree.id)
        self._tree.waiting = bool(items)
        self._waiting = [known.get(item.id) or _Waiting(item, _message(item)) for item in items]


def _message(item: QueueItem) -> Message:
    """What is no message is delivered as its text: whoever queued it past our commands stops nobody's run by that."""
    try:
        return from_wire(item.message)
    except MessageError:
        return UserMessage.of(json.dumps(item.message, ensure_ascii=False))


def _holds(messages: Sequence[Message], message: Message) -> bool:
    return any(one is message for one in messages)
