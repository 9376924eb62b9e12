"""What is to be written while a turn is at work: it waits, so that it lands after the turn's own messages."""

from collections import deque

from pilothouse.agents.session import Body, SessionTree


class PendingWrites:
    """First in, first out. Each is given up only after its write; one that failed is tried again by the next flush."""

    def __init__(self, tree: SessionTree) -> None:
        self._tree = tree
        self._bodies: deque[Body] = deque()
        self.written = 0
        """How many were written."""

    def put(self, body: Body) -> None:
        self._bodies.append(body)

    async def flush(self) -> bool:
        """Whether there was anything to write."""
        any_pending = bool(self._bodies)
        while self._bodies:
            await self._tree.add(self._bodies[0])
            self._bodies.popleft()
            self.written += 1
        return any_pending
