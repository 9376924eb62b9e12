"""A run with one agent step, and the store as each attempt of that step sees it; and a store that dies."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from uuid import UUID, uuid4

from pilothouse.agents.messages import UserMessage, to_wire
from pilothouse.records.events import Event, NewEvent
from pilothouse.records.failures import Failure
from pilothouse.records.queues import QueueItem, QueueName
from pilothouse.records.runs import AttemptRef, NewRun, NewStep, RunRef, StepId
from pilothouse.records.sessions import Appended, NewEntry, NewToolCall, Session, ToolCallRow, ToolOutcome
from pilothouse.records.states import AttemptState, StepState
from pilothouse.records.values import BlobRef, Outputs, Stored
from pilothouse.store.ports import AttemptStore, RunStore
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, StepChange, Transition

STEP = StepId("ask")


class Desk:
    """Opens one attempt after the other; each supersedes the one before, as after a kill."""

    def __init__(self, store: RunStore, run: RunRef, epoch: int) -> None:
        self.session = uuid4()
        self.outside = store.session_store()
        self._store = store
        self.run = run
        self._epoch = epoch
        self._open: AttemptRef | None = None

    async def attempt(self, number: int = 1) -> AttemptStore:
        before = self._open
        fence = before.fence if before else 0
        self._open = AttemptRef(self.run, uuid4(), fence + 1)
        closing = [AttemptClosing(before.attempt, fence, AttemptState.LOST)] if before else []
        change = [] if before else [StepChange(STEP, frozenset({StepState.PENDING}), StepState.RUNNING)]
        opening = AttemptOpening(STEP, self._open.attempt, fence, number, 0, "n")
        await self._store.commit(self.run, self._epoch, Transition(change, closing, [opening]))
        return self._store.attempt_store(self._open)

    async def say(self, queue: QueueName, text: str, id: UUID | None = None) -> QueueItem:
        """Somebody outside of the run says it to the session."""
        message = to_wire(UserMessage.of(text, 1))
        return await self.outside.enqueue(self.run.tenant, self.session, queue, message, id)

    async def take_back(self, *items: QueueItem) -> None:
        await self.outside.cancel(self.run.tenant, self.session, [item.id for item in items])

    async def waiting(self) -> list[str]:
        found = await self.outside.queued(self.run.tenant, self.session)
        return [item.message["content"][0]["text"] for item in found]

    async def events(self) -> Sequence[Event]:
        return await self._store.events(self.run)

    async def stored(self) -> Session:
        [session] = await self.sessions()
        return session

    async def sessions(self) -> Sequence[Session]:
        return await self._store.sessions(self.run)


@asynccontextmanager
async def a_desk(store: RunStore, tenant: UUID | None = None) -> AsyncIterator[Desk]:
    run = RunRef(tenant or uuid4(), uuid4())
    new = NewRun(run.tenant, run.run, "team-a", "w", uuid4(), "k", {}, {}, [NewStep(STEP, "invokeAgent")])
    async with store.lead(str(run.run)) as leadership:
        await store.create_run(new)
        yield Desk(store, run, leadership.epoch)


class Desks:
    """Desks in one store, each with a run of its own."""

    def __init__(self, store: RunStore, stack: AsyncExitStack) -> None:
        self._store = store
        self._stack = stack

    async def new(self, tenant: UUID | None = None) -> Desk:
        return await self._stack.enter_async_context(a_desk(self._store, tenant))


class Killed(BaseException):
    """The process died here."""


class DyingStore:
    """A store whose process dies at its write number `at` (from 0): before it, or right after it.

    `writes` names the writes that were asked for, `recorded` the calls whose results are in the store. After
    the death every write is another death, as nothing of a dead process goes on.
    """

    def __init__(self, store: AttemptStore, at: int, *, after: bool) -> None:
        self.ref = store.ref
        self.writes: list[str] = []
        self.recorded: set[str] = set()
        self._store = store
        self._at = at
        self._after = after

    async def before(self, name: str) -> None:
        """What happens in the world before the write."""

    @asynccontextmanager
    async def _write(self, name: str) -> AsyncIterator[None]:
        number = len(self.writes)
        self.writes.append(name)
        await self.before(name)
        if number > self._at or (number == self._at and not self._after):
            raise Killed
        yield
        if number == self._at:
            raise Killed

    async def open_session(self, session: UUID, name: str | None = None) -> Session:
        async with self._write("open"):
            return await self._store.open_session(session, name)

    async def append(
        self,
        session: UUID,
        leaf: UUID | None,
        entries: Sequence[NewEntry],
        events: Sequence[NewEvent] = (),
        outcomes: Sequence[ToolOutcome] = (),
        consumed: Sequence[UUID] = (),
    ) -> Appended:
        role = entries[0].body.get("message", {}).get("role", entries[0].type)
        async with self._write(f"append {role}"):
            written = await self._store.append(session, leaf, entries, events, outcomes, consumed)
            self.recorded |= {outcome.message["toolCallId"] for outcome in outcomes}
            return written

    async def queued(self, session: UUID) -> Sequence[QueueItem]:
        return await self._store.queued(session)

    async def clear(self, session: UUID, queues: Sequence[QueueName], id: UUID | None = None) -> Sequence[QueueItem]:
        async with self._write("clear"):
            return await self._store.clear(session, queues, id)

    async def intend(self, session: UUID, call: NewToolCall, events: Sequence[NewEvent] = ()) -> ToolCallRow:
        async with self._write("intend"):
            return await self._store.intend(session, call, events)

    async def record(self, session: UUID, outcome: ToolOutcome, events: Sequence[NewEvent] = ()) -> Stored:
        async with self._write("record"):
            result = await self._store.record(session, outcome, events)
            self.recorded.add(outcome.message["toolCallId"])
            return result

    async def tool_calls(self, session: UUID, turn: UUID) -> Sequence[ToolCallRow]:
        return await self._store.tool_calls(session, turn)

    async def put_blob(self, data: bytes) -> BlobRef:
        return await self._store.put_blob(data)

    async def get_blob(self, digest: str) -> bytes:
        return await self._store.get_blob(digest)

    async def finish(self, state: AttemptState, outputs: Outputs | None = None, failure: Failure | None = None) -> None:
        await self._store.finish(state, outputs, failure)
