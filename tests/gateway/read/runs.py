"""A run with everything that people read of one: steps, attempts, logs, events, a conversation, outputs."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from pilothouse.records.events import EventType, NewEvent
from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.runs import Run, RunRef
from pilothouse.records.sessions import NewEntry
from pilothouse.records.states import AttemptState, RunState, StepState
from pilothouse.records.values import Inline, Stored, encode
from pilothouse.store.ports import RunStore
from pilothouse.store.transitions import AttemptClosing, RunClosing, StepChange, Transition
from pilothouse.workflows.commands import frames
from tests.store.samples import BUILD, PENDING, RUNNING, TEST, new_run, open_attempt, start

SECRETIVE = "a text of a ConfigMap"
LOG = frames.encode("start", {"pid": 7, "at": 1.0}) + frames.encode("out", "one\ntwo\n")
LARGE = "x" * 100_000
FAILURE = Failure(FailureCode.EXE, "the command ended with exit code 1")


@dataclass(frozen=True)
class Made:
    """What the test may ask for."""

    run: RunRef
    command: UUID
    agent: UUID
    session: UUID
    log: str


async def begun_run(store: RunStore, tenant: UUID, **changes: Any) -> Run:
    """A run of the workflow `nightly` in `team-a`, of which nothing has happened yet."""
    closure = {"steps": [], "configMaps": {"notes": SECRETIVE}}
    return await store.create_run(new_run(tenant, closure=closure, **changes))


async def full_run(store: RunStore, tenant: UUID, texts: tuple[str, ...] = ("hello",), **changes: Any) -> Made:
    """It failed: `build` printed LOG and failed, `test` spoke the texts; it has a small and a large output."""
    run = (await begun_run(store, tenant, **changes)).ref
    command, agent = await open_attempt(store, run, BUILD), await open_attempt(store, run, TEST)
    session, attempt, leaf = uuid4(), store.attempt_store(agent), None
    await attempt.open_session(session)
    for text in texts:
        entry = NewEntry(uuid4(), "message", {"message": {"role": "user", "content": [{"type": "text", "text": text}]}})
        await attempt.append(session, leaf, [entry])
        leaf = entry.id
    await attempt.finish(AttemptState.SUCCEEDED, {"text": Inline("a step's output")})
    log = await store.put_blob(tenant, LOG)
    closing = AttemptClosing(command.attempt, command.fence, AttemptState.FAILED, failure=FAILURE, log=log)
    begun = Transition(steps=[start(BUILD), start(TEST)], events=[NewEvent(EventType.STEP_STARTED, BUILD)])
    await store.commit(run, 1, begun)
    ends = [StepChange(BUILD, RUNNING, StepState.FAILED, failure=FAILURE), _success()]
    outputs: dict[str, Stored] = {
        "small": Inline("ok\ud800"),
        "large": await store.put_blob(tenant, encode(LARGE).encode()),
    }
    end = RunClosing(RunState.FAILED, outputs, FAILURE)
    told = [NewEvent(EventType.STEP_FAILED, BUILD, FAILURE.to_json()), NewEvent(EventType.RUN_FAILED)]
    await store.commit(run, 1, Transition(steps=ends, closings=[closing], run=end, events=told))
    return Made(run, command.attempt, agent.attempt, session, log.digest)


async def tell(store: RunStore, run: RunRef, count: int = 1) -> None:
    """Records that many events of the run."""
    await store.commit(run, 1, Transition(events=[NewEvent(EventType.TOOL_STARTED, BUILD, {"tool": "t"})] * count))


def _success() -> StepChange:
    return StepChange(TEST, RUNNING, StepState.SUCCEEDED, outputs={"text": Inline("a step's output")})


__all__ = ["BUILD", "PENDING", "TEST", "Made", "begun_run", "full_run", "tell"]
