"""The queues of a harness: what is said to an agent while it is at work, or before its next prompt."""

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias
from uuid import UUID

from pilothouse.agents.journal import CallResult, PreparedCall, Recorder
from pilothouse.agents.messages import Message
from pilothouse.agents.queue import MessageQueue, QueueMode
from pilothouse.agents.turns import Turn

QueueName: TypeAlias = Literal["steer", "followUp", "nextTurn"]


class Queues(Protocol):
    """First in, first out, each by itself. What is taken stays at the head until it is delivered or given back."""

    async def put(self, queue: QueueName, message: Message) -> None: ...

    async def waiting(self, queue: QueueName) -> Sequence[Message]:
        """Without those that are taken."""
        ...

    async def take(self, queue: QueueName, mode: QueueMode) -> Sequence[Message]: ...

    async def delivered(self, messages: Sequence[Message]) -> None:
        """The messages, the same objects that were taken, are in the session now; others change nothing."""
        ...

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

    async def delivered(self, messages: Sequence[Message]) -> None:
        for message in messages:
            for queue in self._queues.values():
                queue.delivered(message)

    async def give_back(self) -> None:
        for queue in self._queues.values():
            queue.give_back()

    async def clear(self, queue: QueueName) -> Sequence[Message]:
        return self._queues[queue].clear()


class Delivering:
    """A Recorder that takes what it has appended out of the queues."""

    def __init__(self, recorder: Recorder, queues: Queues) -> None:
        self._recorder = recorder
        self._queues = queues

    async def append(self, messages: Sequence[Message], results: Sequence[CallResult] = ()) -> UUID:
        entry = await self._recorder.append(messages, results)
        await self._queues.delivered(messages)
        return entry

    async def intend(self, turn: Turn, call: PreparedCall) -> None:
        await self._recorder.intend(turn, call)

    async def record(self, result: CallResult) -> None:
        await self._recorder.record(result)
