"""A gateway before a store, a run with one agent step, and the Pods of its attempts as processes of this machine."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp

from pilothouse.attempts.assignment import Assignment
from pilothouse.gateway.refusals import HANDLERS
from pilothouse.gateway.room import Room
from pilothouse.gateway.store_api import store_routes
from pilothouse.records.runs import Attempt, AttemptRef, NewRun, NewStep, RunRef, StepId
from pilothouse.records.sessions import Session
from pilothouse.records.states import AttemptState, StepState
from pilothouse.store.ports import RunStore
from pilothouse.store.remote.wire import PATH
from pilothouse.store.transitions import AttemptClosing, AttemptOpening, StepChange, Transition
from pilothouse.workflows.work import AgentWork
from tests.gateway.doubles import FakeKube
from tests.gateway.serving import CA, served
from tests.tools.sandbox.processes import children

STEP = StepId("ask")
TOOLS = [{"builtin": name} for name in ("shell", "file_read", "file_write")]


def scripted(*turns: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """The spec of an agent whose model says that."""
    return {"model": {"provider": "Scripted", "script": list(turns)}, "tools": TOOLS, **spec}


def shell(command: str) -> dict[str, Any]:
    return {"toolCalls": [{"name": "shell", "arguments": {"command": command}}]}


def says(text: str) -> dict[str, Any]:
    return {"text": text}


class Scene:
    """Opens one attempt after the other, each carried by a Pod of its own; and looks at what became of them."""

    def __init__(self, store: RunStore, run: RunRef, epoch: int, url: str, kube: FakeKube) -> None:
        self.run = run
        self.url = url
        self.store = store
        self._epoch = epoch
        self.kube = kube
        self._open: AttemptRef | None = None

    async def attempt(self, number: int = 1) -> str:
        """The token of the Pod that carries the next attempt; the one before is lost."""
        before, pod = self._open, str(uuid4())
        fence = before.fence if before else 0
        self._open = ref = AttemptRef(self.run, uuid4(), fence + 1)
        pending = frozenset({StepState.PENDING})
        change = [] if before else [StepChange(STEP, pending, StepState.RUNNING)]
        opening = AttemptOpening(STEP, ref.attempt, fence, number, 0, "n")
        closing = [AttemptClosing(before.attempt, fence, AttemptState.LOST)] if before else []
        await self.store.commit(self.run, self._epoch, Transition(change, closing, [opening]))
        await self.store.carry(ref, self._epoch, pod)
        return self.kube.pod(pod)

    async def environment(
        self,
        spec: Mapping[str, Any],
        *,
        sandbox: bool = False,
        limit: float | None = None,
        asked: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, str]:
        """The variables of a Pod that is to do this work. `asked` are the specs of Agents that can be asked."""
        others = asked or {}
        prompts = {name: f"You are {name}." for name in others}
        work = Assignment(AgentWork("worker", spec, "Go.", {}, limit, agents=others), "", prompts).encode()
        blob = await self.store.put_blob(self.run.tenant, work)
        return {
            "PILOTHOUSE_STORE_URL": self.url,
            "PILOTHOUSE_STORE_CA_PEM": CA,
            "PILOTHOUSE_WORK": blob.digest,
            "PILOTHOUSE_STEP": STEP.path,
            "PILOTHOUSE_STEP_INDEX": "0",
            "PILOTHOUSE_ATTEMPT_NUMBER": "1",
        } | ({"PILOTHOUSE_SANDBOX": "1"} if sandbox else {})

    async def newest(self) -> Attempt:
        return (await self.store.attempts(self.run))[-1]

    async def session(self) -> Session:
        [session] = await self.store.sessions(self.run)
        return session

    async def messages(self) -> list[dict[str, Any]]:
        """The conversation as it is stored."""
        return [entry.body["message"] for entry in (await self.session()).entries if entry.type == "message"]


def store_api(store: RunStore, kube: FakeKube) -> ASGIApp:
    """What Pods see of a gateway."""
    return Starlette(routes=[Mount(PATH, routes=store_routes(store, kube, Room()))], exception_handlers=HANDLERS)


@asynccontextmanager
async def a_scene(store: RunStore) -> AsyncIterator[Scene]:
    run, kube = RunRef(uuid4(), uuid4()), FakeKube()
    steps = [NewStep(STEP, "invokeAgent")]
    async with store.lead(str(run.run)) as leadership, served(store_api(store, kube)) as url:
        await store.create_run(NewRun(run.tenant, run.run, "team-a", "w", uuid4(), "k", {}, {}, steps))
        yield Scene(store, run, leadership.epoch, url, kube)


class Agent:
    """A process of an agent."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._log = ""

    async def end(self) -> int:
        """Its exit status, once it has ended."""
        _, rest = await self.process.communicate()
        self._log += rest.decode()
        return self.process.returncode or 0

    async def until(self, text: str) -> None:
        """Waits for a line of its log that holds the text."""
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self._log += line.decode()
            if text in line.decode():
                return
        raise AssertionError(f"it ended without saying {text!r}; it said: {self._log}")

    @property
    def log(self) -> str:
        return self._log

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The structured lines of its log."""
        return [json.loads(line) for line in self._log.splitlines() if line.startswith("{")]


class Machine:
    """Starts processes of this user in a folder of the test's, and ends what is left of them."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self.folder = folder
        self._stack = stack
        (folder / "door").mkdir(parents=True, exist_ok=True)
        (folder / "workspace").mkdir(exist_ok=True)

    async def agent(self, token: str, environment: Mapping[str, str], *kill: str) -> Agent:
        (self.folder / "token").write_text(token)
        return Agent(
            await self.start(sys.executable, "-m", "tests.attempts.agent", str(self.folder), *kill, **environment)
        )

    async def sandbox(self) -> Process:
        place = ("--connect", f"{self.folder}/door/agent", "--workspace", f"{self.folder}/workspace")
        server = ("-I", "-m", "pilothouse.tools.sandbox", *place, "--seal", "required")
        return await self.start(sys.executable, *server)

    async def start(self, *command: str, **environment: str) -> Process:
        process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stderr=PIPE, env=environment)
        self._stack.push_async_callback(_end, process)
        return process


async def _end(process: Process) -> None:
    """Kills it, and first what it has started: a container's first process does not die with what made it."""
    with suppress(FileNotFoundError, ProcessLookupError):  # it has ended, and was waited for by now
        for pid in (*children(process.pid), process.pid):
            os.kill(pid, signal.SIGKILL)
    await process.communicate()


def events(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]
