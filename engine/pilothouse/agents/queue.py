"""Messages that wait for their turn."""

from collections.abc import Sequence
from typing import Literal, TypeAlias

from pilothouse.agents.messages import Message

QueueMode: TypeAlias = Literal["all", "one-at-a-time"]


class MessageQueue:
    """First in, first out. What was taken stays at the head, in hand, until it is delivered: a run that ends before
    gives it back, so that no message is lost and none comes twice."""

    def __init__(self, mode: QueueMode = "one-at-a-time") -> None:
        self.mode: QueueMode = mode
        self._messages: list[Message] = []
        self._in_hand = 0

    @property
    def waiting(self) -> Sequence[Message]:
        """Without those in hand."""
        return tuple(self._messages[self._in_hand :])

    def put(self, message: Message) -> None:
        self._messages.append(message)

    def take(self) -> Sequence[Message]:
        """The next one, or with the mode `all` all that wait."""
        taken = self.waiting if self.mode == "all" else self.waiting[:1]
        self._in_hand += len(taken)
        return taken

    def delivered(self, message: Message) -> None:
        """The message is part of the conversation now; one that is not in hand changes nothing."""
        for at, held in enumerate(self._messages[: self._in_hand]):
            if held is message:
                del self._messages[at]
                self._in_hand -= 1
                return

    def give_back(self) -> None:
        self._in_hand = 0

    def clear(self) -> Sequence[Message]:
        """Returns what waited; what is in hand is no longer in the queue's power."""
        cleared = self.waiting
        del self._messages[self._in_hand :]
        return cleared
