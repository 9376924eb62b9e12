"""The runs of one namespace of a cluster."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import quote
from uuid import UUID

from pilothouse.cli.command import tell
from pilothouse.cli.names import ID_BEGINNING, the_one
from pilothouse.cli.questions import Questions
from pilothouse.gateway.read import wire
from pilothouse.records.events import Event
from pilothouse.records.runs import Attempt, Run, RunRef, Snapshot
from pilothouse.records.sessions import Entry, Session
from pilothouse.records.values import BlobRef
from pilothouse.store.errors import NotFound, StoreUnusable
from pilothouse.store.history import RunLine, SessionLine

WAIT = 9
"""Seconds that one question waits for a change: less than those who follow a run wait for one."""

_WORKFLOW = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_NUMBER = re.compile(r"[0-9]{1,9}")
_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BEGINNING = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{0,4}){0,3}(-[0-9a-f]{0,12})?")


class RemoteRuns:
    """Implements Reading, and RunReader for each of its runs. It remembers where each blob is to be had that an answer
    named, and the entries of sessions, which only grow."""

    poll = 1.0

    def __init__(self, questions: Questions, namespace: str) -> None:
        self.namespace = namespace
        self._questions = questions
        self._blobs: dict[str, str] = {}
        self._entries: dict[UUID, list[Entry]] = {}
        self._told = False

    @property
    def store(self) -> "RemoteRuns":
        return self

    async def find(self, name: str) -> Run:
        return the_one(await self._named(name), name, self.namespace)

    async def lines(self) -> Sequence[RunLine]:
        return await self._lines({})

    async def snapshot(self, run: RunRef) -> Snapshot:
        path = self._path(run)
        found, more = await self._questions.ask(path, _snapshot)
        if more:
            rest = self._questions.pages(path, wire.step_from_json, len(found.steps))
            found = replace(found, steps={**found.steps, **{step.id: step async for step in rest}})
        for name, stored in found.run.outputs.items():
            if isinstance(stored, BlobRef):
                self._blobs[stored.digest] = f"{path}/outputs/{quote(name, safe='')}"
        return found

    async def attempts(self, run: RunRef) -> Sequence[Attempt]:
        path, read = f"{self._path(run)}/attempts", partial(wire.attempt_from_json, run)
        attempts = [attempt async for attempt in self._questions.pages(path, read)]
        for attempt in attempts:
            if attempt.log is not None:
                self._blobs[attempt.log.digest] = f"{path}/{attempt.ref.attempt}/log"
        return attempts

    async def events(self, run: RunRef, after: int = 0, limit: int = 1_000) -> Sequence[Event]:
        """In as many pages as the gateway makes of them; `seq` counts without gaps, and so do pages."""
        events: list[Event] = []
        async for event in self._questions.pages(
            f"{self._path(run)}/events", partial(wire.event_from_json, run), after
        ):
            events.append(event)
            if len(events) == limit:
                break
        return events

    @asynccontextmanager
    async def changes(self, run: RunRef) -> AsyncIterator[AsyncIterator[None]]:
        yield self._changes(f"{self._path(run)}/changes", await self._seq(f"{self._path(run)}/changes", {}))

    async def sessions(self, run: RunRef) -> Sequence[Session]:
        path = f"{self._path(run)}/sessions"
        lines = [line async for line in self._questions.pages(path, wire.session_from_json)]
        return [Session(line.id, line.leaf, tuple(await self._read_on(path, line))) for line in lines]

    async def get_blob(self, tenant: UUID, digest: str) -> bytes:
        """A blob that an answer named; there is no asking for others."""
        if digest not in self._blobs:
            raise NotFound(f"no run that was read refers to {digest}")
        return await self._questions.blob(self._blobs[digest], digest)

    async def output(self, run: Run, attempt: Attempt) -> bytes:
        """Of an open attempt alone: what others printed is kept. Who may not read it is told so once."""
        if attempt.state.final or self._told:
            return b""
        try:
            return await self._questions.output(run, attempt)
        except StoreUnusable as error:
            self._told = True
            tell(f"pilothouse: what running commands print is left out: {error}")
            return b""

    async def _named(self, name: str) -> Sequence[Run]:
        """By an id as a whole, which needs no right to list; by workflow and number; by the beginning of an id."""
        workflow, slash, number = name.partition("/")
        if _ID.fullmatch(name) and (run := await self._by_id(UUID(name))):
            return [run]
        if _WORKFLOW.fullmatch(workflow) and (not slash or _NUMBER.fullmatch(number)):
            query = {"workflow": workflow, "limit": "1"} | ({"number": number} if slash else {})
            if found := await self._lines(query):
                return [line.run for line in found]
        if len(name) >= ID_BEGINNING and _BEGINNING.fullmatch(name):
            return [line.run for line in await self._lines({"id": name})]
        return []

    async def _by_id(self, run: UUID) -> Run | None:
        try:
            return await self._questions.ask(f"{self._runs}/{run}", lambda body: wire.run_from_json(body["run"]))
        except NotFound:
            return None

    async def _lines(self, query: Mapping[str, str]) -> Sequence[RunLine]:
        return await self._questions.ask(self._runs, lambda body: list(map(wire.line_from_json, body["items"])), query)

    async def _changes(self, path: str, seq: int) -> AsyncIterator[None]:
        while True:
            newest = await self._seq(path, {"since": str(seq), "wait": str(WAIT)})
            if newest > seq:
                yield
            seq = newest

    async def _seq(self, path: str, query: Mapping[str, str]) -> int:
        return await self._questions.ask(path, lambda body: int(body["seq"]), query)

    async def _read_on(self, path: str, line: SessionLine) -> Sequence[Entry]:
        entries = self._entries.setdefault(line.id, [])
        if len(entries) < line.entries:
            path = f"{path}/{line.id}/entries"
            entries += [entry async for entry in self._questions.pages(path, wire.entry_from_json, len(entries))]
        return entries

    @property
    def _runs(self) -> str:
        return f"namespaces/{self.namespace}/runs"

    def _path(self, run: RunRef) -> str:
        return f"{self._runs}/{run.run}"


def _snapshot(body: Any) -> tuple[Snapshot, bool]:
    """The snapshot with its first steps, and whether there are more."""
    steps = {step.id: step for step in map(wire.step_from_json, body["items"])}
    now = datetime.fromisoformat(body["now"])
    return Snapshot(wire.run_from_json(body["run"]), steps, {}, now), bool(body["more"])
