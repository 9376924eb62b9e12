"""Writes whose request or answer is lost on the way to a gateway are there exactly once, whatever killed it."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.server import ServerState

from pilothouse.gateway.app import build_app
from pilothouse.records.states import AttemptState
from pilothouse.store.errors import StoreUnavailable, Superseded
from pilothouse.store.ports import AttemptStore, RunStore
from tests.gateway.doubles import FakeKube
from tests.gateway.serving import NO_HISTORY, StoreOverHTTP, cut, http, served
from tests.store.lossy import MARK, NOTHING, REPLY, REQUEST, WRITES, Desk
from tests.store.samples import message


@dataclass
class Cable:
    """What is between a gateway and its clients: it breaks before a request of its script is heard, or before it is
    answered."""

    app: ASGIApp
    state: ServerState = field(default_factory=ServerState)
    script: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        lost = self.script.pop(0) if self.script else NOTHING

        async def dropped(message: Message) -> None:
            """Nobody hears this."""

        if lost != REQUEST:
            await self.app(scope, receive, dropped if lost == REPLY else send)
        if lost != NOTHING:
            cut(self.state)


@pytest.fixture
def cable(postgres: RunStore) -> Cable:
    return Cable(build_app(postgres, NO_HISTORY, FakeKube()))


@asynccontextmanager
async def over(store: RunStore, desk: Desk, url: str) -> AsyncIterator[AttemptStore]:
    """The desk's attempt over HTTP, made patient."""
    async with http(url) as client:
        yield desk.made_patient(StoreOverHTTP(store, client).attempt_store(desk.ref))


@pytest.fixture
def store(postgres: RunStore) -> RunStore:
    return postgres


ONCE = {name: WRITES[name] for name in ("append", "intend", "record", "finish")} | {
    "intend idempotently": lambda desk, store: store.intend(desk.session, desk.call(idempotent=True), [MARK])
}
"""The writes that must not be made twice."""

once = pytest.mark.parametrize("name", ONCE)


@once
@pytest.mark.parametrize("lost", [[REQUEST], [REPLY]], ids=["request", "reply"])
async def test_a_write_on_a_broken_connection_is_there_once(
    store: RunStore, desk: Desk, cable: Cable, name: str, lost: list[str]
) -> None:
    async with served(cable, state=cable.state) as url, over(store, desk, url) as patient:
        cable.script = [*lost]
        await written_once(desk, patient, name, REPLY in lost)


async def test_without_patience_a_lost_answer_is_told_and_nothing_is_sent_again(
    store: RunStore, desk: Desk, cable: Cable
) -> None:
    async with served(cable, state=cable.state) as url, http(url) as client:
        remote = StoreOverHTTP(store, client).attempt_store(desk.ref)
        cable.script = [REPLY]
        with pytest.raises(StoreUnavailable, match="cannot be reached now"):
            await remote.append(desk.session, desk.turn, [message()], [MARK])
    assert await desk.marks() == 1


async def test_what_is_idempotent_goes_through_a_broken_connection(store: RunStore, desk: Desk, cable: Cable) -> None:
    async with served(cable, state=cable.state) as url, over(store, desk, url) as patient:
        cable.script = [REPLY, REQUEST, REPLY]
        blob = await patient.put_blob(b"bytes")
        cable.script = [REPLY, REQUEST]
        assert await patient.get_blob(blob.digest) == b"bytes"
        cable.script = [REPLY]
        assert await patient.open_session(desk.session) == await desk.direct.open_session(desk.session)
    assert len(desk.pauses) == 6


async def written_once(desk: Desk, patient: AttemptStore, name: str, committed: bool) -> None:
    """Makes the write. Where the first try of a `finish` was carried out, the second finds the attempt over."""
    if name == "finish":
        if committed:
            with pytest.raises(Superseded):
                await ONCE[name](desk, patient)
        else:
            await ONCE[name](desk, patient)
        [attempt] = await desk.store.attempts(desk.ref.run)
        assert attempt.state is AttemptState.SUCCEEDED
    else:
        await ONCE[name](desk, patient)
        assert await desk.marks() == 1
        session = await desk.direct.open_session(desk.session)
        calls = await desk.direct.tool_calls(desk.session, desk.turn)
        assert len(session.entries) == (2 if name == "append" else 1)
        assert len(calls) == (2 if name.startswith("intend") else 1)
        assert (calls[0].result is not None) == (name == "record")
    assert desk.pauses, "the first try was lost"


@dataclass
class Gateway:
    """A gateway's process, begun again by a test at the port that it has had."""

    dsn: str
    held: AsyncExitStack
    port: int = 0
    process: Process | None = None

    async def start(self, number: int = 0, moment: str = "never") -> None:
        arguments = ("tests.store.remote.gateway_process", self.dsn, str(self.port), str(number), moment)
        self.process = await asyncio.create_subprocess_exec(sys.executable, "-m", *arguments, stdin=PIPE, stdout=PIPE)
        self.held.push_async_callback(_ended, self.process)
        assert self.process.stdout is not None
        self.port = int(await self.process.stdout.readline())

    async def again(self) -> None:
        """The next process, once the one before was killed."""
        process = cast(Process, self.process)
        if await process.wait() == -signal.SIGKILL:
            await self.start()


async def _ended(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
    process._transport.close()  # type: ignore[attr-defined]  # its pipes, which nobody reads any more


@once
@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_gateway_that_is_killed_at_a_write_has_made_it_once(
    database: str, store: RunStore, desk: Desk, name: str, moment: str
) -> None:
    async with AsyncExitStack() as held:
        gateway = Gateway(database, held)
        await gateway.start(1, moment)
        desk.meanwhile = gateway.again
        async with over(store, desk, f"https://127.0.0.1:{gateway.port}") as patient:
            await written_once(desk, patient, name, moment == "after")
