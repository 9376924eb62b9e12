"""Sessions as the view `session_entries` shows them: a row for each entry, or one row without an entry."""

from collections import defaultdict
from collections.abc import Iterable
from uuid import UUID

from psycopg.rows import DictRow

from pilothouse.records.sessions import Session
from pilothouse.store.rows import session_of


def sessions_of(rows: Iterable[DictRow]) -> list[Session]:
    """The sessions, in the order of their first rows."""
    by_session: dict[tuple[UUID, UUID | None], list[DictRow]] = defaultdict(list)
    for row in rows:
        by_session[row["session"], row["leaf"]].append(row)
    return [
        session_of(session, leaf, (entry for entry in entries if entry["id"]))
        for (session, leaf), entries in by_session.items()
    ]
