"""One request as the agent sees it: what has come back so far. All that comes is untrusted."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pilothouse.tools.sandbox.errors import ANSWERS, ProtocolError
from pilothouse.tools.sandbox.output import HeadAndTail, RunResult
from pilothouse.tools.sandbox.protocol import Frame

Stream = Literal["stdout", "stderr"]
OnOutput = Callable[[Stream, bytes], object]


class Exchange:
    """A request that is answered by `done`. `ended` is its last frame, `trouble` what went wrong on this side."""

    last_kind = "done"

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[Frame] = loop.create_future()
        self.trouble: asyncio.Future[None] = loop.create_future()
        self._may_send = asyncio.Event()
        self._may_send.set()

    def feed(self, frame: Frame) -> None:
        """Take the next frame; raises `ProtocolError` if it is not one that this request can get."""
        if frame.kind == "more":
            self._may_send.set()
        elif frame.kind == "error":
            self.fail(_error(frame))
        elif frame.kind == self.last_kind:
            self.check_last(frame)
            if not self.ended.done():
                self.ended.set_result(frame)
        else:
            self.receive(frame)

    def check_last(self, frame: Frame) -> None:
        """Raise `ProtocolError` if the last frame lacks what it must say."""

    def receive(self, frame: Frame) -> None:
        raise ProtocolError(f"the sandbox sent a `{frame.kind}` frame that nobody asked for")

    def fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)
            self.ended.exception()  # Marks it as seen: a request that was given up has no reader.

    async def turn_to_send(self) -> None:
        """Wait until the sandbox has used the last frame of the body."""
        await self._may_send.wait()
        self._may_send.clear()


class RunExchange(Exchange):
    last_kind = "exit"

    def __init__(self, max_output: int, on_output: OnOutput | None) -> None:
        super().__init__()
        self._streams: dict[str, HeadAndTail] = {"stdout": HeadAndTail(max_output), "stderr": HeadAndTail(max_output)}
        self._on_output = on_output

    def receive(self, frame: Frame) -> None:
        if frame.kind != "stdout" and frame.kind != "stderr":
            super().receive(frame)
            return
        self._streams[frame.kind].add(frame.payload)
        if self._on_output is not None and not self.trouble.done():
            try:
                self._on_output("stdout" if frame.kind == "stdout" else "stderr", frame.payload)
            except Exception as error:  # The caller's own; it is raised where the caller waits.
                self.trouble.set_exception(error)

    def check_last(self, frame: Frame) -> None:
        code, number = frame.optional_int("code"), frame.optional_int("signal")
        frame.get("timed_out", bool)
        if (code is None) == (number is None) or not 0 <= (code or 0) <= 255 or not 0 <= (number or 0) <= 64:
            raise ProtocolError(f"the sandbox reported an impossible end: code {code}, signal {number}")

    def result(self, last: Frame) -> RunResult:
        code, number, timed_out = last.optional_int("code"), last.optional_int("signal"), last.get("timed_out", bool)
        out, err = self._streams["stdout"], self._streams["stderr"]
        return RunResult(code, number, timed_out, out.content(), err.content(), out.omitted, err.omitted)


class Download(Exchange):
    """Collects a body of at most `max_bytes`, and its SHA-256."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._left = max_bytes
        self._data = bytearray()
        self._digest = hashlib.sha256()

    def receive(self, frame: Frame) -> None:
        if frame.kind != "data":
            super().receive(frame)
        self._left -= len(frame.payload)
        if self._left < 0:
            raise ProtocolError("the sandbox sent more than was asked for")
        self._data += frame.payload
        self._digest.update(frame.payload)

    @property
    def data(self) -> bytes:
        return bytes(self._data)

    @property
    def digest(self) -> str:
        return f"sha256:{self._digest.hexdigest()}"


class FileDownload(Download):
    def check_last(self, frame: Frame) -> None:
        frame.get("size", int)
        frame.get("mode", int)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a directory: its path in the workspace; `size` in bytes, of a file."""

    path: str
    kind: Literal["file", "directory", "link", "other"]
    size: int


class Listed(Exchange):
    """Collects at most `max_entries` entries."""

    def __init__(self, max_entries: int) -> None:
        super().__init__()
        self.entries: list[Entry] = []
        self._most = max_entries

    def receive(self, frame: Frame) -> None:
        if frame.kind != "data":
            super().receive(frame)
        if len(self.entries) >= self._most:
            raise ProtocolError("the sandbox sent more than was asked for")
        self.entries.append(_entry(frame.payload))

    def check_last(self, frame: Frame) -> None:
        frame.get("more", bool)


def _entry(line: bytes) -> Entry:
    try:
        match json.loads(line):
            case [str(path), ("file" | "directory" | "link" | "other") as kind, int(size)]:
                return Entry(path, kind, size)
    except (ValueError, RecursionError):
        pass
    raise ProtocolError("the sandbox sent an entry that is none")


def _error(frame: Frame) -> Exception:
    code, message = frame.get("code", str), frame.get("message", str)
    if code not in ANSWERS:
        raise ProtocolError(f"the sandbox answered with an unknown error {code!r}: {message}")
    return ANSWERS[code](message)
