"""Records as rows and back. A row maps column names to plain values; JSON columns hold encoded text.

Both implementations of the ports keep these rows, so what one of them refuses, the other refuses, too.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from pilothouse.records.events import Event, EventType, NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.runs import (
    SCHEMA_VERSION,
    Attempt,
    AttemptRef,
    NewRun,
    NewStep,
    Run,
    RunName,
    RunRef,
    Step,
    StepId,
)
from pilothouse.records.sessions import Entry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState, RunState, Shutdown, StepState
from pilothouse.records.values import (
    INLINE_LIMIT,
    BlobRef,
    Outputs,
    Stored,
    ValueRefused,
    decode,
    digest,
    encode,
    outputs_from_json,
    outputs_to_json,
)
from pilothouse.store.rules import Link, plain, seconds
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, RunClosing, StepChange

Row: TypeAlias = dict[str, Any]

_AROUND = 2
"""Levels that a row has around the value of an output: its name's, and that of `Stored`."""


def run_row(new: NewRun) -> dict[str, Any]:
    """The columns of a new run; `deadline_seconds` counts from the moment of writing."""
    return {
        "tenant": new.tenant,
        "id": new.run,
        "namespace": plain(new.namespace, "namespace"),
        "workflow": plain(new.workflow, "workflow"),
        "workflow_uid": new.workflow_uid,
        "run_key": plain(new.key, "key"),
        "closure": encode(dict(new.closure)),
        "params": encode(dict(new.params)),
        "requests": encode(dict(new.requests)),
        "schema_version": SCHEMA_VERSION,
        "deadline_seconds": seconds(new.deadline_seconds, "deadline_seconds"),
    }


def run_of(row: Row) -> Run:
    if row["schema_version"] > SCHEMA_VERSION:
        raise ValueRefused(
            f"run {row['id']} has schema version {row['schema_version']}, written by a newer pilothouse; "
            f"this one reads up to {SCHEMA_VERSION}"
        )
    return Run(
        ref=RunRef(row["tenant"], row["id"]),
        number=row["number"],
        namespace=row["namespace"],
        workflow=row["workflow"],
        workflow_uid=row["workflow_uid"],
        key=row["run_key"],
        closure=decode(row["closure"]),
        params=decode(row["params"]),
        state=RunState(row["state"]),
        created_at=row["created_at"],
        deadline=row["deadline"],
        finished_at=row["finished_at"],
        shutdown=Shutdown(row["shutdown"]) if row["shutdown"] else None,
        outputs=_outputs_of(row),
        failure=_failure_of(row),
        event_seq=row["event_seq"],
        epoch=row["leader_epoch"],
        schema_version=row["schema_version"],
        requests=decode(row["requests"]),
    )


def run_name_of(row: Row) -> RunName:
    return RunName(RunRef(row["tenant"], row["id"]), row["number"], row["namespace"], row["workflow"])


def step_rows(steps: Sequence[NewStep]) -> list[dict[str, Any]]:
    """The columns of new steps. Raises ValueRefused where two have one id."""
    if len({step.id for step in steps}) < len(steps):
        raise ValueRefused("two steps have the same path and index")
    return [_new_step_row(step) for step in steps]


def _new_step_row(step: NewStep) -> dict[str, Any]:
    outputs = _outputs_text(step.outputs)
    return step_key(step.id) | {"kind": plain(step.kind, "kind"), "state": step.state.value, "outputs": outputs}


def step_key(step: StepId) -> dict[str, Any]:
    return {"path": plain(step.path, "path"), "index": step.index}


def step_of(row: Row) -> Step:
    return Step(
        id=step_id_of(row),
        kind=row["kind"],
        state=StepState(row["state"]),
        attempts=row["attempts"],
        restarts=row["restarts"],
        fence=row["fence"],
        outputs=_outputs_of(row),
        failure=_failure_of(row),
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        wake_at=row["wake_at"],
    )


def step_id_of(row: Row) -> StepId:
    return StepId(row["path"], row["index"])


def step_change_row(change: StepChange) -> dict[str, Any]:
    return {"state": change.state.value} | outcome_row(change.outputs, change.failure)


def opening_row(opening: AttemptOpening) -> dict[str, Any]:
    return step_key(opening.step) | {
        "id": opening.attempt,
        "number": opening.number,
        "restart": opening.restart,
        "nonce": plain(opening.nonce, "nonce"),
    }


def closing_row(closing: AttemptClosing) -> dict[str, Any]:
    log = encode(closing.log.to_json()) if closing.log else None
    return attempt_outcome_row(closing.state, closing.outputs, closing.failure) | {"log": log}


def attempt_outcome_row(state: AttemptState, outputs: Outputs | None, failure: Failure | None) -> dict[str, Any]:
    """The columns that end an attempt. Raises ValueError where the state ends nothing."""
    if not state.final:
        raise ValueError(f"an attempt cannot end in the state {state}")
    return {"state": state.value} | outcome_row(outputs, failure)


def run_closing_row(closing: RunClosing) -> dict[str, Any]:
    """The columns that end a run. Raises ValueError where the state ends nothing."""
    if not closing.state.final:
        raise ValueError(f"a run cannot end in the state {closing.state}")
    return {"state": closing.state.value} | outcome_row(closing.outputs, closing.failure)


def outcome_row(outputs: Outputs | None, failure: Failure | None) -> dict[str, Any]:
    return {
        "outputs": _outputs_text(outputs or {}),
        "failure": encode(failure.to_json()) if failure else None,
    }


def attempt_of(row: Row) -> Attempt:
    return Attempt(
        ref=AttemptRef(RunRef(row["tenant"], row["run"]), row["id"], row["fence"]),
        step=step_id_of(row),
        number=row["number"],
        restart=row["restart"],
        nonce=row["nonce"],
        state=AttemptState(row["state"]),
        created_at=row["created_at"],
        deadline=row["deadline"],
        finished_at=row["finished_at"],
        outputs=_outputs_of(row),
        failure=_failure_of(row),
        log=_log_of(row),
        call=row["call"],
        carrier=row["carrier"],
    )


def event_row(event: NewEvent) -> dict[str, Any]:
    where = step_key(event.step) if event.step else {"path": None, "index": None}
    return where | {"type": event.type.value, "data": encode(dict(event.data))}


def event_of(row: Row) -> Event:
    return Event(
        run=RunRef(row["tenant"], row["run"]),
        seq=row["seq"],
        type=EventType(row["type"]),
        step=step_id_of(row) if row["path"] is not None else None,
        data=decode(row["data"]),
        at=row["at"],
    )


def entry_row(link: Link) -> dict[str, Any]:
    return {
        "id": link.entry.id,
        "parent": link.parent,
        "type": plain(link.entry.type, "type"),
        "body": encode(dict(link.entry.body)),
        "target": link.target,
    }


def entry_of(row: Row) -> Entry:
    return Entry(row["id"], row["parent"], row["seq"], row["type"], decode(row["body"]), row["attempt"], row["at"])


def session_of(session: UUID, leaf: UUID | None, entries: Iterable[Row]) -> Session:
    """The session with its entries, which come in any order."""
    ordered = sorted(entries, key=lambda entry: int(entry["seq"]))
    return Session(session, leaf, tuple(entry_of(entry) for entry in ordered))


NEW_CALL: Row = {"result": None, "is_error": False, "finished_at": None}
"""What is known of a call's result before there is one."""


def tool_call_row(call: NewToolCall) -> dict[str, Any]:
    return {
        "turn": call.turn,
        "ordinal": call.ordinal,
        "call": plain(call.call, "call"),
        "tool": plain(call.tool, "tool"),
        "arguments": call.arguments,
        "digest": digest(call.arguments),
        "idempotent": call.idempotent,
    }


def tool_outcome_row(outcome: ToolOutcome) -> tuple[dict[str, Any], bytes | None]:
    """The columns of a result, and the bytes of the blob that holds it where it is too large for its row."""
    text = encode(dict(outcome.message))
    columns = {"turn": outcome.turn, "ordinal": outcome.ordinal, "is_error": outcome.is_error}
    if len(text) <= INLINE_LIMIT:
        return columns | {"result": f'{{"value":{text}}}'}, None
    data = text.encode()
    return columns | {"result": encode(blob_ref(data).to_json())}, data


def blob_ref(data: bytes) -> BlobRef:
    return BlobRef(digest(data), len(data))


def tool_call_of(row: Row) -> ToolCallRow:
    return ToolCallRow(
        turn=row["turn"],
        ordinal=row["ordinal"],
        call=row["call"],
        tool=row["tool"],
        arguments=row["arguments"],
        digest=row["digest"],
        idempotent=row["idempotent"],
        attempt=row["attempt"],
        intended_at=row["intended_at"],
        result=_result_of(row),
        is_error=row["is_error"],
        finished_at=row["finished_at"],
    )


def _outputs_text(outputs: Outputs) -> str:
    return encode(outputs_to_json(outputs), around=_AROUND)


def _outputs_of(row: Row) -> Outputs:
    return outputs_from_json(decode(row["outputs"]))


def _failure_of(row: Row) -> Failure | None:
    return Failure.from_json(decode(row["failure"])) if row["failure"] else None


def _log_of(row: Row) -> BlobRef | None:
    if row["log"] is None:
        return None
    body = decode(row["log"])
    return BlobRef(body["blob"], body["size"])


def _result_of(row: Row) -> Stored | None:
    return None if row["result"] is None else stored_of(row["result"])


def stored_of(text: str) -> Stored:
    """The value that a column holds."""
    return outputs_from_json({"result": decode(text)})["result"]
