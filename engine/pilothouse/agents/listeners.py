"""Who hears of events, in the order in which they came."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeAlias, TypeVar

from pilothouse.agents.abort import Signal

E = TypeVar("E")

Listener: TypeAlias = Callable[[E, Signal], Awaitable[None]]
"""An abort does not cancel a listener; the signal tells it."""


class Listeners(Generic[E]):
    def __init__(self) -> None:
        self._listeners: list[Listener[E]] = []

    def subscribe(self, listener: Listener[E]) -> Callable[[], None]:
        """Returns what ends the subscription."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def tell(self, event: E, signal: Signal) -> None:
        """One after the other; what one raises is raised, and the others do not hear of it."""
        for listener in tuple(self._listeners):
            await listener(event, signal)
