"""A session that is made ready outside of any store, to be stored whole."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from pilothouse.agents.session.jsonl import SessionFile
from pilothouse.agents.session.transfer import Imported, import_session
from pilothouse.agents.session.tree import SessionTree
from pilothouse.records.events import NewEvent
from pilothouse.records.sessions import FROM_OUTSIDE, Appended, Entry, NewEntry, Session, ToolOutcome
from pilothouse.store.ports import AttemptStore
from pilothouse.store.rules import chain


async def drafted(session: UUID, file: SessionFile) -> tuple[Sequence[NewEntry], Imported]:
    """The entries of the file as that session has them, with all that an import adds, and what it did."""
    draft = _Draft()
    imported = await import_session(SessionTree(cast(AttemptStore, draft), Session(session, None), 1), file)
    return draft.entries, imported


class _Draft:
    """Takes the place of the store of a tree that is only written to."""

    def __init__(self) -> None:
        self.entries: list[NewEntry] = []

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent],
        outcomes: Sequence[ToolOutcome],
        consumed: Sequence[UUID],
    ) -> Appended:
        now, before = datetime.now(UTC), len(self.entries)
        self.entries += entries
        written = (
            Entry(link.entry.id, link.parent, seq, link.entry.type, link.entry.body, FROM_OUTSIDE, now)
            for seq, link in enumerate(chain(leaf, entries), before + 1)
        )
        return Appended(written, waiting=False)
