"""What a command gave: its end, and as much of its output as the caller wants to keep."""

from dataclasses import dataclass

MAX_OUTPUT = 256 * 1024
"""Bytes kept of each stream unless the caller says otherwise."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a command ended: `exit_code` if by itself, else `signal`, the number of the signal that ended it.

    `timed_out` says that it was ended because its time was over. `stdout` and `stderr` are whole unless `…_omitted`
    (a number of bytes) is not zero; then they hold the beginning, a line that says so, and the end.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    stdout: bytes
    stderr: bytes
    stdout_omitted: int = 0
    stderr_omitted: int = 0

    @property
    def truncated(self) -> bool:
        return bool(self.stdout_omitted or self.stderr_omitted)


class HeadAndTail:
    """Keeps the first and the last half of `limit` bytes, whatever comes."""

    def __init__(self, limit: int) -> None:
        self._head_room = (limit + 1) // 2
        self._tail_room = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.omitted = 0

    def add(self, data: bytes) -> None:
        room = self._head_room - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if (surplus := len(self._tail) - self._tail_room) > 0:
            del self._tail[:surplus]
            self.omitted += surplus

    def content(self) -> bytes:
        gap = b"\n[... %d bytes left out ...]\n" % self.omitted if self.omitted else b""
        return bytes(self._head) + gap + bytes(self._tail)
