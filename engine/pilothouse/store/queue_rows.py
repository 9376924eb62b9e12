"""Queues and lists of sessions as rows and back, as `rows.py` has the others."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import AttemptRef, RunName, RunRef
from pilothouse.records.sessions import SessionHead
from pilothouse.records.values import decode, encode
from pilothouse.store.rows import Row


def item_row(id: UUID, queue: QueueName, message: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": id, "queue": QueueName(queue).value, "message": encode(dict(message), "message")}


def item_of(row: Row) -> QueueItem:
    return QueueItem(row["id"], QueueName(row["queue"]), decode(row["message"]), row["seq"], row["at"])


def head_of(row: Row) -> SessionHead:
    """`holder` is null in the row where that attempt is over, `run` where no run opened the session, and `waiting`,
    which is JSON, where nothing waits."""
    holder = RunRef(row["tenant"], row["holder_run"]) if row["holder"] else None
    run = RunRef(row["tenant"], row["run"]) if row["run"] else None
    return SessionHead(
        id=row["id"],
        name=row["name"],
        leaf=row["leaf"],
        entries=row["entry_seq"],
        created_at=row["created_at"],
        changed_at=row["changed_at"],
        holder=AttemptRef(holder, row["holder"], row["fence"]) if holder else None,
        run=RunName(run, row["number"], row["namespace"], row["workflow"]) if run else None,
        waiting={QueueName(queue): count for queue, count in decode(row["waiting"] or "{}").items()},
    )
