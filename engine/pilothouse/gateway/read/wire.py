"""The wire form of what people read: records as JSON and back.

What the history leaves out (closure, verbs, outputs of steps and attempts) is not on the wire either and comes back
empty; so do carriers, and of a nonce only its beginning is told. Reading raises KeyError, TypeError or ValueError
where an answer is none of this version's.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from pilothouse.records.events import Event, EventType
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueName
from pilothouse.records.runs import Attempt, AttemptRef, Run, RunName, RunRef, Step, StepId
from pilothouse.records.sessions import Entry, SessionHead
from pilothouse.records.states import AttemptState, RunState, Shutdown, StepState
from pilothouse.records.values import BlobRef, outputs_from_json, outputs_to_json
from pilothouse.store.history import RunLine, SessionLine

Body = dict[str, Any]
T = TypeVar("T")

ROOT = "/read/v1"
"""What every path of the read API begins with."""

TOKEN_HEADER = "X-Pilothouse-Token"  # noqa: S105 - the header's name
"""Where the token stands in a request that comes through the API server, which keeps `Authorization` to itself."""

NONCE = 12
"""Characters of an attempt's nonce that are told: those that stand in the name of its Pod."""


def run_to_json(run: Run) -> Body:
    return {
        "tenant": str(run.ref.tenant),
        "id": str(run.ref.run),
        "number": run.number,
        "namespace": run.namespace,
        "workflow": run.workflow,
        "workflowUid": str(run.workflow_uid),
        "key": run.key,
        "params": dict(run.params),
        "state": run.state.value,
        "createdAt": _time(run.created_at),
        "deadline": _time(run.deadline),
        "finishedAt": _time(run.finished_at),
        "shutdown": run.shutdown,
        "outputs": outputs_to_json(run.outputs),
        "failure": _failure(run.failure),
        "seq": run.event_seq,
    }


def run_from_json(body: Body) -> Run:
    return Run(
        ref=RunRef(UUID(body["tenant"]), UUID(body["id"])),
        number=body["number"],
        namespace=body["namespace"],
        workflow=body["workflow"],
        workflow_uid=UUID(body["workflowUid"]),
        key=body["key"],
        closure={},
        params=body["params"],
        state=RunState(body["state"]),
        created_at=datetime.fromisoformat(body["createdAt"]),
        deadline=_maybe(datetime.fromisoformat, body["deadline"]),
        finished_at=_maybe(datetime.fromisoformat, body["finishedAt"]),
        shutdown=_maybe(Shutdown, body["shutdown"]),
        outputs=outputs_from_json(body["outputs"]),
        failure=_maybe(Failure.from_json, body["failure"]),
        event_seq=body["seq"],
    )


def line_to_json(line: RunLine) -> Body:
    counts = {"steps": line.steps, "settled": line.settled}
    return {"run": run_to_json(line.run), **counts, "now": _time(line.now)}


def line_from_json(body: Body) -> RunLine:
    now = datetime.fromisoformat(body["now"])
    return RunLine(run_from_json(body["run"]), int(body["steps"]), int(body["settled"]), now)


def step_to_json(step: Step) -> Body:
    return _step_id(step.id) | {
        "kind": step.kind,
        "state": step.state.value,
        "attempts": step.attempts,
        "restarts": step.restarts,
        "fence": step.fence,
        "failure": _failure(step.failure),
        "startedAt": _time(step.started_at),
        "finishedAt": _time(step.finished_at),
        "wakeAt": _time(step.wake_at),
    }


def step_from_json(body: Body) -> Step:
    return Step(
        id=StepId(body["path"], body["index"]),
        kind=body["kind"],
        state=StepState(body["state"]),
        attempts=body["attempts"],
        restarts=body["restarts"],
        fence=body["fence"],
        failure=_maybe(Failure.from_json, body["failure"]),
        started_at=_maybe(datetime.fromisoformat, body["startedAt"]),
        finished_at=_maybe(datetime.fromisoformat, body["finishedAt"]),
        wake_at=_maybe(datetime.fromisoformat, body["wakeAt"]),
    )


def attempt_to_json(attempt: Attempt) -> Body:
    return _step_id(attempt.step) | {
        "id": str(attempt.ref.attempt),
        "fence": attempt.ref.fence,
        "number": attempt.number,
        "restart": attempt.restart,
        "nonce": attempt.nonce[:NONCE],
        "state": attempt.state.value,
        "createdAt": _time(attempt.created_at),
        "deadline": _time(attempt.deadline),
        "finishedAt": _time(attempt.finished_at),
        "failure": _failure(attempt.failure),
        "log": attempt.log.to_json() if attempt.log else None,
        "call": attempt.call,
    }


def attempt_from_json(run: RunRef, body: Body) -> Attempt:
    return Attempt(
        ref=AttemptRef(run, UUID(body["id"]), body["fence"]),
        step=StepId(body["path"], body["index"]),
        number=body["number"],
        restart=body["restart"],
        nonce=body["nonce"],
        state=AttemptState(body["state"]),
        created_at=datetime.fromisoformat(body["createdAt"]),
        deadline=_maybe(datetime.fromisoformat, body["deadline"]),
        finished_at=_maybe(datetime.fromisoformat, body["finishedAt"]),
        failure=_maybe(Failure.from_json, body["failure"]),
        log=_maybe(_blob, body["log"]),
        call=body["call"],
    )


def event_to_json(event: Event) -> Body:
    step = _step_id(event.step) if event.step else None
    return {"seq": event.seq, "type": event.type.value, "step": step, "data": dict(event.data), "at": _time(event.at)}


def event_from_json(run: RunRef, body: Body) -> Event:
    step = _maybe(lambda step: StepId(step["path"], step["index"]), body["step"])
    return Event(run, body["seq"], EventType(body["type"]), step, body["data"], datetime.fromisoformat(body["at"]))


def session_to_json(line: SessionLine) -> Body:
    return {"id": str(line.id), "leaf": str(line.leaf) if line.leaf else None, "entries": line.entries}


def session_from_json(body: Body) -> SessionLine:
    return SessionLine(UUID(body["id"]), _maybe(UUID, body["leaf"]), int(body["entries"]))


def head_to_json(head: SessionHead) -> Body:
    holder = head.holder
    return {
        "id": str(head.id),
        "name": head.name,
        "leaf": str(head.leaf) if head.leaf else None,
        "entries": head.entries,
        "createdAt": _time(head.created_at),
        "changedAt": _time(head.changed_at),
        "holder": {"run": str(holder.run.run), "attempt": str(holder.attempt), "fence": holder.fence}
        if holder
        else None,
        "run": _run_name(head.run) if head.run else None,
        "waiting": {queue.value: count for queue, count in head.waiting.items()},
    }


def head_from_json(tenant: UUID, body: Body) -> SessionHead:
    def holder(body: Body) -> AttemptRef:
        return AttemptRef(RunRef(tenant, UUID(body["run"])), UUID(body["attempt"]), body["fence"])

    def run(body: Body) -> RunName:
        return RunName(RunRef(tenant, UUID(body["id"])), body["number"], body["namespace"], body["workflow"])

    return SessionHead(
        id=UUID(body["id"]),
        name=body["name"],
        leaf=_maybe(UUID, body["leaf"]),
        entries=body["entries"],
        created_at=datetime.fromisoformat(body["createdAt"]),
        changed_at=datetime.fromisoformat(body["changedAt"]),
        holder=_maybe(holder, body["holder"]),
        run=_maybe(run, body["run"]),
        waiting={QueueName(queue): int(count) for queue, count in body["waiting"].items()},
    )


def entry_from_json(body: Body) -> Entry:
    parent, at = _maybe(UUID, body["parent"]), datetime.fromisoformat(body["at"])
    return Entry(UUID(body["id"]), parent, body["seq"], body["type"], body["body"], UUID(body["attempt"]), at)


def _run_name(run: RunName) -> Body:
    return {"id": str(run.ref.run), "number": run.number, "namespace": run.namespace, "workflow": run.workflow}


def _step_id(step: StepId) -> Body:
    return {"path": step.path, "index": step.index}


def _blob(body: Mapping[str, Any]) -> BlobRef:
    return BlobRef(body["blob"], body["size"])


def _failure(failure: Failure | None) -> Body | None:
    return failure.to_json() if failure else None


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _maybe(read: Callable[[Any], T], value: Any) -> T | None:
    return None if value is None else read(value)
