"""`logs`: what the steps of a run printed, and what its agents said and did, in the order of their attempts."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pilothouse.cli.command import CommandError, complete
from pilothouse.cli.names import find_run
from pilothouse.cli.printing import print_text
from pilothouse.cli.where import Where
from pilothouse.records.runs import Attempt, RunRef
from pilothouse.records.sessions import Entry
from pilothouse.store.ports import RunStore
from pilothouse.workflows.commands import frames
from pilothouse.workflows.local.place import Place

POLL = 0.3
"""Seconds between two looks at the output of running commands, of which nothing tells."""


def logs(where: Where, name: str, step: str | None, follow: bool, namespace: str) -> int:
    """`pilothouse logs`."""

    async def command() -> int:
        async with where.store() as store:
            run = await find_run(store, name, namespace)
            reader = _Reader(where, store, run.ref, step)
            await reader.check()
            while True:
                over = (await store.snapshot(run.ref)).run.state.final
                await reader.print_new(last=over or not follow)
                if over or not follow:
                    return 0
                await asyncio.sleep(POLL)

    return complete(command)


@dataclass
class _Output:
    """What was printed of one attempt's output."""

    frames: int = 0
    open_lines: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    def lines(self, data: bytes) -> Iterator[str]:
        """The lines that have ended since the last look."""
        texts = [(key, body) for key, body in frames.decode(data) if key in {"out", "err"}]
        for key, text in texts[self.frames :]:
            *lines, self.open_lines[key] = (self.open_lines.get(key, "") + text).split("\n")
            yield from lines
        self.frames = max(self.frames, len(texts))

    def rest(self) -> Iterator[str]:
        """The last lines, where no newline ends them."""
        yield from filter(None, self.open_lines.values())
        self.open_lines.clear()


class _Reader:
    """Remembers what was printed of each attempt and session."""

    def __init__(self, where: Where, store: RunStore, run: RunRef, step: str | None) -> None:
        self._where = where
        self._store = store
        self._run = run
        self._step = step
        self._outputs: dict[UUID, _Output] = {}
        self._entries: dict[UUID, int] = {}
        self._steps: dict[UUID, str] = {}

    async def check(self) -> None:
        steps = [str(id_) for id_ in (await self._store.snapshot(self._run)).steps]
        if self._step is not None and self._step not in steps:
            raise CommandError(f"the run has no step `{self._step}`; its steps are: {', '.join(steps)}")

    async def print_new(self, last: bool) -> None:
        """What came since the last look; with `last`, also lines that no newline ends yet."""
        sessions = await self._store.sessions(self._run)  # first, so that each entry's attempt is known
        for attempt in await self._store.attempts(self._run):
            self._steps[attempt.ref.attempt] = str(attempt.step)
            output = self._outputs.setdefault(attempt.ref.attempt, _Output())
            if self._wanted(str(attempt.step)) and not output.complete:
                await self._print_output(attempt, output, last)
        for session in sessions:
            printed = self._entries.get(session.id, 0)
            for entry in session.entries[printed:]:
                self._print_entry(entry)
            self._entries[session.id] = len(session.entries)

    async def _print_output(self, attempt: Attempt, output: _Output, last: bool) -> None:
        for line in output.lines(await self._data(attempt)):
            self._print(str(attempt.step), line)
        output.complete = attempt.state.final
        for line in output.rest() if output.complete or last else ():
            self._print(str(attempt.step), line)

    async def _data(self, attempt: Attempt) -> bytes:
        if attempt.log is not None:
            return await self._store.get_blob(self._run.tenant, attempt.log.digest)
        return await asyncio.to_thread(Place.of(self._where.attempts, attempt).data)

    def _print_entry(self, entry: Entry) -> None:
        step = self._steps.get(entry.attempt, "")
        if entry.type == "message" and self._wanted(step):
            for line in _message_lines(dict(entry.body)["message"]):
                self._print(step, line)

    def _wanted(self, step: str) -> bool:
        return self._step is None or self._step == step

    def _print(self, step: str, line: str) -> None:
        print_text(line if self._step else f"[{step}] {line}")


def _message_lines(message: dict[str, Any]) -> Iterator[str]:
    role = message["role"]
    for block in message["content"]:
        match block.get("type"):
            case "text" | "thinking":
                text = block.get("text") or block.get("thinking") or ""
                yield from (f"{role}: {line}" for line in text.split("\n"))
            case "toolCall":
                yield f"{role}: {block['name']}({json.dumps(block.get('arguments'), ensure_ascii=False)})"
            case kind:
                yield f"{role}: <{kind}>"
    if message.get("errorMessage"):
        yield f"{role}: {message['errorMessage']}"
