"""What a gateway passes on: the long answers of the AttemptStore and the SessionStore in parts, of which each is as
large as was asked for, so that nobody has to hold the whole."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import SessionHead
from pilothouse.store.rows import Row


@dataclass(frozen=True, slots=True)
class Page:
    """Rows with their JSON as it is kept: nobody who only passes it on needs to know what it says. `next` is the size
    of the row after these, 0 where there is none. `leaf` is the session's, in a page of entries."""

    rows: Sequence[Row]
    next: int
    leaf: UUID | None = None


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of a blob, which has `size` of them."""

    size: int
    data: bytes


class AttemptPages(Protocol):
    """A page holds the rows after one that are no more than `size` bytes together: none, where the first is larger.
    Its `next` says what to ask for then. Each call is refused as the whole one is."""

    async def session_page(self, session: UUID, after: int, size: int, name: str | None = None) -> Page:
        """As `open_session`: entries with a `seq` greater than `after`. The first page, after 0, opens the session.
        The leaf is that of the moment in which a page without a next one was read, and so are the entries up to
        there."""
        ...

    async def call_page(self, session: UUID, turn: UUID, after: int, size: int) -> Page:
        """As `tool_calls`: calls with an `ordinal` greater than `after`, their arguments in base64."""
        ...

    async def queue_page(self, session: UUID, after: int, size: int) -> Page:
        """As `queued`: items with a `seq` greater than `after`."""
        ...

    async def clear_page(self, session: UUID, queues: Sequence[QueueName], id: UUID, after: int, size: int) -> Page:
        """As `clear`: items with a `seq` greater than `after`. The first page, after 0, takes back what waits."""
        ...

    async def blob_piece(self, digest: str, start: int, length: int) -> Piece:
        """As `get_blob`: the bytes from `start` on, at most `length`."""
        ...


class SessionReading(Protocol):
    """What people read of sessions, from outside of every attempt. Pages are as of AttemptPages."""

    async def sessions(self, tenant: UUID, before: UUID | None = None, limit: int = 100) -> Sequence[SessionHead]:
        """The tenant's sessions, newest first, from below the session `before` on."""
        ...

    async def session(self, tenant: UUID, session: UUID) -> SessionHead:
        """Raises NotFound."""
        ...

    async def entry_page(self, tenant: UUID, session: UUID, after: int, limit: int, size: int) -> Page:
        """As `SessionStore.entries`. `next` tells of an entry within the limit that has no place."""
        ...

    async def item_page(self, tenant: UUID, session: UUID, after: int, size: int) -> Page:
        """As `SessionStore.queued`: items with a `seq` greater than `after`."""
        ...
