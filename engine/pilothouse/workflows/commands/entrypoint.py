"""The entry point of a command step: runs one command and frames all that comes of it.

    python -m pilothouse.workflows.commands.entrypoint SPEC [LOG]

SPEC is a file with a JSON object: `argv`, `cwd`, `timeout` (seconds or null), `output` (the path that the command
knows as $PILOTHOUSE_OUTPUT) and `confined`. `own_user` false says that others run as this user as well, as in a Pod.
The command gets this process's environment. Frames go to LOG, else to standard output. A LOG is held under a lock
while the command runs and is written only if it is empty, so one LOG never sees a command begun twice, whoever starts
the entry point how often.
"""

import codecs
import fcntl
import json
import os
import selectors
import signal
import stat
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from pilothouse.tools.sandbox.descendants import REAP_LIMIT, adopt_orphans, die_with_parent, reap
from pilothouse.workflows.commands import frames

GRACE = 5.0
"""Seconds between the request to end and the kill."""

DRAIN = 2.0
"""Seconds to read what is left in the pipes once the command has ended."""

TICK = 0.05
"""Seconds between two looks at the command, while it prints nothing."""

TAKEN = 75
"""Exit status where another entry point had this LOG before."""


class Stream:
    """One output of the command: logged up to the limit, after that only its tail kept."""

    def __init__(self, key: str, write: Callable[[bytes], None]) -> None:
        self._key = key
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._logged = 0
        self._late: deque[bytes] = deque()
        self._late_size = 0
        self.left_out = 0

    def feed(self, data: bytes) -> None:
        if self._logged < frames.LOG_LIMIT:
            self._logged += len(data)
            self._frame(self._decoder.decode(data))
            return
        self._late.append(data)
        self._late_size += len(data)
        while self._late_size - len(self._late[0]) >= frames.TAIL:
            dropped = len(self._late.popleft())
            self._late_size -= dropped
            self.left_out += dropped

    def close(self) -> None:
        self._frame(self._decoder.decode(b"".join(self._late), final=True))

    def _frame(self, text: str) -> None:
        for line in frames.encode_text(self._key, text):
            self._write(line)


class Command:
    """The command's process group, from its start to its end."""

    def __init__(self, spec: dict[str, Any], write: Callable[[bytes], None]) -> None:
        self._spec = spec
        self._streams = {name: Stream(name, write) for name in ("out", "err")}
        self._end = frames.Exit()
        self._process: subprocess.Popen[bytes] | None = None
        self._kill_at: float | None = None
        self._drained_at: float | None = None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._stop(frames.Exit(stopped=True)))

    def run(self) -> frames.Exit:
        if self._spec["confined"] and (problem := _confine(self._spec.get("own_user", True))):
            return frames.Exit(problem=problem)
        try:
            self._process = process = self._spawn()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            return frames.Exit(problem=f"cannot start {self._spec['argv'][0]!r}: {error}")
        if self._kill_at is not None:  # the request to end came while the command was being started
            _signal_group(process, signal.SIGTERM)
        self._pump(process)
        status = process.wait()
        reap(REAP_LIMIT)
        for stream in self._streams.values():
            stream.close()
        left_out = sum(stream.left_out for stream in self._streams.values())
        end = self._end._replace(left_out=left_out)
        return end._replace(code=status) if status >= 0 else end._replace(signal=-status)

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 - running the user's command is what this program is for
            self._spec["argv"],
            cwd=self._spec["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        """Reads until the command has ended. What it left running in the background is ended with it."""
        deadline = time.monotonic() + self._spec["timeout"] if self._spec["timeout"] else None
        with selectors.DefaultSelector() as selector:
            for name, pipe in (("out", process.stdout), ("err", process.stderr)):
                assert pipe is not None  # noqa: S101 - both were asked for above
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, self._streams[name])
            while not self._over(process, selector):
                self._read(selector, selector.select(TICK))
                self._watch(process, deadline)

    def _over(self, process: subprocess.Popen[bytes], selector: selectors.BaseSelector) -> bool:
        """Whether the command has ended and what it left in the pipes was read, or has had its time to be."""
        if process.poll() is None:
            return False
        if self._drained_at is None:
            _signal_group(process, signal.SIGKILL)
            self._drained_at = time.monotonic() + DRAIN
        return not selector.get_map() or time.monotonic() >= self._drained_at

    def _read(self, selector: selectors.BaseSelector, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, _ in ready:
            data = os.read(key.fd, 65536)
            if data:
                key.data.feed(data)
            else:
                selector.unregister(key.fileobj)

    def _watch(self, process: subprocess.Popen[bytes], deadline: float | None) -> None:
        now = time.monotonic()
        if self._kill_at is not None and now >= self._kill_at:
            _signal_group(process, signal.SIGKILL)
        elif self._kill_at is None and deadline is not None and now >= deadline:
            self._stop(frames.Exit(timed_out=True))

    def _stop(self, why: frames.Exit) -> None:
        if self._kill_at is None:
            self._end = why
            self._kill_at = time.monotonic() + GRACE
            if self._process is not None:
                _signal_group(self._process, signal.SIGTERM)


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _confine(own_user: bool) -> str:
    """Confines this process and so the command; returns what keeps it from doing so."""
    from pilothouse.tools.sandbox.errors import SealUnavailable
    from pilothouse.workflows.commands.confine import confine

    try:
        confine(own_user)
    except SealUnavailable as error:
        return f"the network cannot be taken from the code: {error}"
    return ""


def _output_frames(path: str) -> tuple[list[bytes], str]:
    """The frames of the command's output object, or the problem with it."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return [], ""
    except OSError as error:
        return [], f"$PILOTHOUSE_OUTPUT cannot be read: {error.strerror}"
    if not stat.S_ISREG(os.fstat(file).st_mode):
        return [], "$PILOTHOUSE_OUTPUT is no regular file"
    with open(file, "rb") as content:
        data = content.read(frames.OUTPUT_LIMIT + 1)
    if len(data) > frames.OUTPUT_LIMIT:
        return [], f"$PILOTHOUSE_OUTPUT holds more than {frames.OUTPUT_LIMIT:,} bytes"
    if not data.strip():
        return [], ""
    return list(frames.encode_text("output", data.decode("utf-8", "surrogateescape"))), ""


def _take(path: str) -> int:
    log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(log, fcntl.LOCK_EX)  # waits: whoever asks whether the lock is held holds it for that moment
    if os.fstat(log).st_size:
        sys.exit(TAKEN)
    return log


def writer(log: int) -> Callable[[bytes], None]:
    def write(line: bytes) -> None:
        while line:
            line = line[os.write(log, line) :]

    return write


def main(spec_path: str, log_path: str | None = None) -> None:
    log = _take(log_path) if log_path else sys.stdout.fileno()
    with open(spec_path, "rb") as file:
        spec = json.load(file)
    run(spec, writer(log))
    if log_path:
        os.fsync(log)


def run(spec: dict[str, Any], write: Callable[[bytes], None]) -> None:
    """Runs the command and writes the frames of all that comes of it."""
    command = Command(spec, write)
    adopt_orphans()
    write(frames.encode("start", {"pid": os.getpid(), "at": time.time()}))
    end = command.run()
    output, problem = _output_frames(spec["output"])
    for line in output:
        write(line)
    write(frames.encode_exit(end._replace(problem=end.problem or problem)))


if __name__ == "__main__":
    main(*sys.argv[1:])
