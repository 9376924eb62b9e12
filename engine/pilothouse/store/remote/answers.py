"""What the store API answers, written by the gateway and read by the client."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import AttemptRef, RunRef
from pilothouse.records.sessions import Appended, Entry, Session, ToolCallRow
from pilothouse.records.values import BlobRef, Stored
from pilothouse.store.pages import Page
from pilothouse.store.remote.requests import read_bytes, read_stored
from pilothouse.store.remote.wire import Fields, Misread, dump
from pilothouse.store.rows import Row


def admission_answer(token: str, seconds: float, ref: AttemptRef) -> dict[str, Any]:
    attempt = {
        "tenant": str(ref.run.tenant),
        "run": str(ref.run.run),
        "attempt": str(ref.attempt),
        "fence": ref.fence,
    }
    return {"token": token, "expires_in": int(seconds), "attempt": attempt}


def read_ref(item: Fields) -> AttemptRef:
    run = RunRef(item.uuid("tenant"), item.uuid("run"))
    return AttemptRef(run, item.uuid("attempt"), item.number("fence"))


@dataclass(frozen=True, slots=True)
class Listing:
    """A list that is answered from pages of rows. A row becomes several texts, for one of them may be large. `column`
    tells how far a page came, and `start` where the first begins."""

    head: str
    texts: Callable[[Row], Iterable[str]]
    end: Callable[[Page], str]
    column: str
    start: int


def _entry_texts(row: Row) -> Iterable[str]:
    small = {name: row[name] for name in ("id", "parent", "seq", "type", "attempt")}
    return dump(small | {"at": row["at"].isoformat()})[:-1], ',"body":', row["body"], "}"


SESSION = Listing('{"entries":[', _entry_texts, lambda last: f"],{dump({'leaf': last.leaf})[1:]}", "seq", 0)


def read_session(session: UUID, body: Fields) -> Session:
    entries = tuple(_read_entry(item) for item in body.each("entries"))
    return Session(session, body.optional("leaf", body.uuid), entries)


def appended_answer(written: Appended) -> dict[str, Any]:
    """Where and when they were written: what they are, the client knows."""
    entries = [{"seq": entry.seq, "at": entry.at.isoformat()} for entry in written]
    return {"entries": entries, "waiting": written.waiting}


def read_appended(body: Fields, count: int) -> tuple[list[dict[str, Any]], bool]:
    """What completes each entry, and whether anything waits."""
    written = [{"seq": item.number("seq"), "at": item.time("at")} for item in body.each("entries")]
    if len(written) != count:
        raise Misread(f"`entries` must have {count} items")
    return written, body.flag("waiting")


def intended_answer(row: ToolCallRow) -> dict[str, Any]:
    return {"intended_at": row.intended_at.isoformat()}


def recorded_answer(result: Stored) -> dict[str, Any]:
    return {"result": result.to_json()}


def read_recorded(body: Fields) -> Stored:
    return read_stored(body.fields("result"))


def _call_texts(row: Row) -> Iterable[str]:
    small = {
        name: row[name] for name in ("turn", "ordinal", "call", "tool", "digest", "idempotent", "attempt", "is_error")
    }
    times = {name: row[name] and row[name].isoformat() for name in ("intended_at", "finished_at")}
    yield from (dump(small | times)[:-1], ',"arguments":"', row["arguments"])
    yield from ('","result":', row["result"] or "null", "}")


CALLS = Listing('{"calls":[', _call_texts, lambda last: "]}", "ordinal", -1)


def read_calls(body: Fields) -> list[ToolCallRow]:
    return [_read_call(item) for item in body.each("calls")]


def _read_call(item: Fields) -> ToolCallRow:
    return ToolCallRow(
        turn=item.uuid("turn"),
        ordinal=item.number("ordinal"),
        call=item.text("call"),
        tool=item.text("tool"),
        arguments=read_bytes(item, "arguments"),
        digest=item.text("digest"),
        idempotent=item.flag("idempotent"),
        attempt=item.uuid("attempt"),
        intended_at=item.time("intended_at"),
        result=item.optional("result", lambda name: read_stored(item.fields(name))),
        is_error=item.flag("is_error"),
        finished_at=item.optional("finished_at", item.time),
    )


def _item_texts(row: Row) -> Iterable[str]:
    small = {"id": row["id"], "queue": row["queue"], "seq": row["seq"], "at": row["at"].isoformat()}
    return dump(small)[:-1], ',"message":', row["message"], "}"


ITEMS = Listing('{"items":[', _item_texts, lambda last: "]}", "seq", 0)


def read_items(body: Fields) -> list[QueueItem]:
    return [_read_item(item) for item in body.each("items")]


def _read_item(item: Fields) -> QueueItem:
    return QueueItem(
        item.uuid("id"), item.read("queue", QueueName), item.object("message"), item.number("seq"), item.time("at")
    )


def blob_answer(ref: BlobRef) -> dict[str, Any]:
    return {"digest": ref.digest, "size": ref.size}


def read_blob(body: Fields) -> BlobRef:
    return BlobRef(body.text("digest"), body.number("size"))


def _read_entry(item: Fields) -> Entry:
    return Entry(
        id=item.uuid("id"),
        parent=item.optional("parent", item.uuid),
        seq=item.number("seq"),
        type=item.text("type"),
        body=item.object("body"),
        attempt=item.uuid("attempt"),
        at=item.time("at"),
    )
