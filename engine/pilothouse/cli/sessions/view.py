"""A session as data: what `-o json` and `-o yaml` print."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pilothouse.agents.session import SessionFile
from pilothouse.records.queues import QueueItem
from pilothouse.records.runs import RunName
from pilothouse.records.sessions import Session, SessionHead


def summary_view(head: SessionHead) -> dict[str, Any]:
    """The session as one row of a list."""
    return {
        "id": str(head.id),
        "name": head.name,
        "run": _run(head.run) if head.run else None,
        "atWork": head.holder is not None,
        "entries": head.entries,
        "createdAt": _time(head.created_at),
        "changedAt": _time(head.changed_at),
        "waiting": {queue.value: count for queue, count in head.waiting.items()},
    }


def session_view(
    head: SessionHead, session: Session, file: SessionFile, waiting: Sequence[QueueItem]
) -> dict[str, Any]:
    """The session with its tree, as a file of it has that, and with the messages that wait."""
    return summary_view(head) | {
        "leaf": str(session.leaf) if session.leaf else None,
        "tree": [entry.to_wire() for entry in file.entries],
        "queued": [_item(item) for item in waiting],
    }


def _item(item: QueueItem) -> dict[str, Any]:
    return {
        "id": str(item.id),
        "queue": item.queue.value,
        "at": _time(item.at),
        "message": dict(item.message),
    }


def _run(run: RunName) -> dict[str, Any]:
    return {"id": str(run.ref.run), "workflow": run.workflow, "number": run.number}


def _time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
