"""What the store API answers, written by the gateway and read by the client."""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from pilothouse.records.runs import AttemptRef, RunRef
from pilothouse.records.sessions import Entry, Session, ToolCallRow
from pilothouse.records.values import BlobRef
from pilothouse.store.remote.requests import read_bytes, read_stored
from pilothouse.store.remote.wire import Fields, Misread


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


def session_answer(session: Session) -> dict[str, Any]:
    return {"leaf": _id(session.leaf), "entries": [_entry(entry) for entry in session.entries]}


def read_session(session: UUID, body: Fields) -> Session:
    entries = tuple(_read_entry(item) for item in body.each("entries"))
    return Session(session, body.optional("leaf", body.uuid), entries)


def appended_answer(entries: Iterable[Entry]) -> dict[str, Any]:
    """Where and when they were written: what they are, the client knows."""
    return {"entries": [{"seq": entry.seq, "at": entry.at.isoformat()} for entry in entries]}


def read_appended(body: Fields, count: int) -> list[dict[str, Any]]:
    written = [{"seq": item.number("seq"), "at": item.time("at")} for item in body.each("entries")]
    if len(written) != count:
        raise Misread(f"`entries` must have {count} items")
    return written


def intended_answer(row: ToolCallRow) -> dict[str, Any]:
    return {"intended_at": row.intended_at.isoformat()}


def call_answer(row: ToolCallRow) -> dict[str, Any]:
    return {
        "turn": str(row.turn),
        "ordinal": row.ordinal,
        "call": row.call,
        "tool": row.tool,
        "arguments": b64encode(row.arguments).decode(),
        "digest": row.digest,
        "idempotent": row.idempotent,
        "attempt": str(row.attempt),
        "intended_at": row.intended_at.isoformat(),
        "result": row.result.to_json() if row.result else None,
        "is_error": row.is_error,
        "finished_at": row.finished_at.isoformat() if row.finished_at else None,
    }


def calls_answer(rows: Sequence[ToolCallRow]) -> dict[str, Any]:
    return {"calls": [call_answer(row) for row in rows]}


def read_calls(body: Fields) -> list[ToolCallRow]:
    return [read_call_row(item) for item in body.each("calls")]


def read_call_row(item: Fields) -> ToolCallRow:
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


def blob_answer(ref: BlobRef) -> dict[str, Any]:
    return {"digest": ref.digest, "size": ref.size}


def read_blob(body: Fields) -> BlobRef:
    return BlobRef(body.text("digest"), body.number("size"))


def _entry(entry: Entry) -> dict[str, Any]:
    return {
        "id": str(entry.id),
        "parent": _id(entry.parent),
        "seq": entry.seq,
        "type": entry.type,
        "body": dict(entry.body),
        "attempt": str(entry.attempt),
        "at": entry.at.isoformat(),
    }


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


def _id(value: UUID | None) -> str | None:
    return None if value is None else str(value)
