"""`logs`: what the steps of a run printed, and what its agents said and did, in the order of their attempts."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from pilothouse.cli.command import CommandError, complete
from pilothouse.cli.printing import print_text
from pilothouse.cli.reading import Reading, Source
from pilothouse.records.runs import Attempt, Run
from pilothouse.records.sessions import Entry
from pilothouse.workflows.commands import frames


def logs(source: Source, name: str, step: str | None, follow: bool, namespace: str | None) -> int:
    """`pilothouse logs`."""

    async def command() -> int:
        async with source.reading(namespace) as reading:
            run = await reading.find(name)
            reader = _Reader(reading, run, step)
            await reader.check()
            while True:
                over = await reader.print_new(follow)
                if over or not follow:
                    return 0
                await asyncio.sleep(reading.poll)

    return complete(command)


@dataclass
class _Output:
    """What was printed of one attempt's output."""

    printed: int = 0
    open_lines: dict[str, str] = field(default_factory=dict)
    complete: bool = False

    def lines(self, data: bytes) -> Iterator[str]:
        """The lines that have ended since the last look. A log that does not begin with a frame is that of a user's
        image, as its container printed it."""
        return self._framed(data) if frames.framed(data) else self._plain(data)

    def rest(self) -> Iterator[str]:
        """The last lines, where no newline ends them."""
        yield from filter(None, self.open_lines.values())
        self.open_lines.clear()

    def _framed(self, data: bytes) -> Iterator[str]:
        texts = [(key, body) for key, body in frames.decode(data) if key in {"out", "err"}]
        for key, text in texts[self.printed :]:
            *lines, self.open_lines[key] = (self.open_lines.get(key, "") + text).split("\n")
            yield from lines
        self.printed = max(self.printed, len(texts))

    def _plain(self, data: bytes) -> Iterator[str]:
        *lines, self.open_lines["out"] = data.decode("utf-8", "replace").split("\n")
        yield from lines[self.printed :]
        self.printed = max(self.printed, len(lines))


class _Reader:
    """Remembers what was printed of each attempt and session."""

    def __init__(self, reading: Reading, run: Run, step: str | None) -> None:
        self._reading = reading
        self._store = reading.store
        self._run = run
        self._step = step
        self._outputs: dict[UUID, _Output] = {}
        self._entries: dict[UUID, int] = {}
        self._steps: dict[UUID, str] = {}

    async def check(self) -> None:
        steps = [str(id_) for id_ in (await self._store.snapshot(self._run.ref)).steps]
        if self._step is not None and self._step not in steps:
            raise CommandError(f"the run has no step `{self._step}`; its steps are: {', '.join(steps)}")

    async def print_new(self, follow: bool) -> bool:
        """What came since the last look. True where the run was over before, so that nothing more comes. Lines that
        no newline ends yet wait for their ends if there is another look."""
        over = (await self._store.snapshot(self._run.ref)).run.state.final
        sessions = await self._store.sessions(self._run.ref)  # before attempts, so that each entry's attempt is known
        for attempt in await self._store.attempts(self._run.ref):
            self._steps[attempt.ref.attempt] = str(attempt.step)
            output = self._outputs.setdefault(attempt.ref.attempt, _Output())
            if self._wanted(str(attempt.step)) and not output.complete:
                await self._print_output(attempt, output, over or not follow)
        for session in sessions:
            printed = self._entries.get(session.id, 0)
            for entry in session.entries[printed:]:
                self._print_entry(entry)
            self._entries[session.id] = len(session.entries)
        return over

    async def _print_output(self, attempt: Attempt, output: _Output, last: bool) -> None:
        for line in output.lines(await self._data(attempt)):
            self._print(str(attempt.step), line)
        output.complete = attempt.state.final
        for line in output.rest() if output.complete or last else ():
            self._print(str(attempt.step), line)

    async def _data(self, attempt: Attempt) -> bytes:
        if attempt.log is not None:
            return await self._store.get_blob(self._run.ref.tenant, attempt.log.digest)
        return await self._reading.output(self._run, attempt)

    def _print_entry(self, entry: Entry) -> None:
        """What attempts of other runs said in a session that passes from run to run is in their logs."""
        step = self._steps.get(entry.attempt)
        if entry.type == "message" and step is not None and self._wanted(step):
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
