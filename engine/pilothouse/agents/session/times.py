"""When an entry was written, for those who read it.

An entry that came from another session (a fork, an import) keeps the time that it had there in its body.
"""

from datetime import UTC, datetime, timedelta

from pilothouse.records.sessions import Entry

TIMESTAMP = "timestamp"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_of(entry: Entry) -> str:
    """In ISO 8601, as the harness writes it."""
    kept = entry.body.get(TIMESTAMP)
    return kept if isinstance(kept, str) else iso(entry.at)


def iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds_of(entry: Entry) -> int:
    """Since 1970, as messages count."""
    return (moment(timestamp_of(entry)) - _EPOCH) // timedelta(milliseconds=1)


def moment(timestamp: str) -> datetime:
    """Raises ValueError for what is no ISO 8601 time; one without a zone is taken for UTC."""
    at = datetime.fromisoformat(timestamp)
    return at if at.tzinfo else at.replace(tzinfo=UTC)
