"""Frames: how the entry point writes a command's output and end into a log of lines.

One JSON object in ASCII a line, so a container runtime's log, which is made of lines, carries them unharmed.
A frame holds exactly one of these keys:

`start`   the entry point took the command on: `{"pid": int, "at": seconds since the epoch}`
`out`     standard output, as text; bytes that are not UTF-8 stand as lone surrogates (PEP 383)
`err`     standard error, likewise
`output`  a piece of the JSON object that the command wrote to $PILOTHOUSE_OUTPUT
`exit`    the end: see `Exit`

Standard library only, and of it only what loads fast: the entry point imports this before each command.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

PIECE = 1024
"""Characters of text in one frame. Escaped they take at most twelve bytes each, and a container runtime splits lines
above 16 KiB."""

OUTPUT_LIMIT = 1024 * 1024
"""Bytes that a command may write to $PILOTHOUSE_OUTPUT."""

LOG_LIMIT = 4 * 1024 * 1024
"""Bytes of output that are logged as they come; of what follows only the tail is kept."""

TAIL = 64 * 1024
"""Bytes of the end of each stream that are kept in any case; also what a step's outputs hold of it."""


class Exit(NamedTuple):
    """How a command ended. `code` is None where a signal or the entry point itself ended it; `problem` says
    why it could not be started or its output could not be read; `left_out` counts bytes of output that
    were not logged."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    stopped: bool = False
    problem: str = ""
    left_out: int = 0


def encode(key: str, body: object) -> bytes:
    """One line with its newline."""
    return json.dumps({key: body}, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"


def encode_exit(end: Exit) -> bytes:
    return encode("exit", end._asdict())


def encode_text(key: str, text: str) -> Iterator[bytes]:
    """The text as frames of at most PIECE characters."""
    for start in range(0, len(text), PIECE):
        yield encode(key, text[start : start + PIECE])


def decode(data: bytes) -> Iterator[tuple[str, Any]]:
    """The frames of a log. A line that is not a frame is passed over: a log may be cut anywhere, a command may
    have written into it, and what cannot be read is no proof of anything. The first `start` and the first `exit`
    are the entry point's own."""
    seen: set[str] = set()
    for line in data.split(b"\n"):
        try:
            frame = json.loads(line)
        except (ValueError, RecursionError):
            continue
        for key, body in frame.items() if isinstance(frame, dict) and len(frame) == 1 else ():
            if key in _SHAPES and key not in seen and _SHAPES[key](body):
                seen |= {key} & {"start", "exit"}
                yield key, body


def framed(data: bytes) -> bool:
    """Whether the log begins as ours do. In a Pod its first frame is of process 1, which `decode` believes of none."""
    try:
        first = json.loads(data.split(b"\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(first, dict) and len(first) == 1 and first.keys() <= _SHAPES.keys()


def _is_text(body: object) -> bool:
    return isinstance(body, str)


def _is_start(body: object) -> bool:
    return isinstance(body, dict) and _is_number(body.get("pid")) and body["pid"] > 1


def _is_exit(body: object) -> bool:
    if not isinstance(body, dict) or body.keys() - Exit._field_defaults.keys():
        return False
    numbers = all(body.get(name) is None or _is_number(body[name]) for name in ("code", "signal"))
    flags = all(isinstance(body.get(name, False), bool) for name in ("timed_out", "stopped"))
    return numbers and flags and isinstance(body.get("problem", ""), str) and isinstance(body.get("left_out", 0), int)


def _is_number(value: object) -> bool:
    """One that a process can have, as its id or of its end."""
    return isinstance(value, int) and 0 <= value < 2**31


_SHAPES: dict[str, Callable[[object], bool]] = {
    "start": _is_start,
    "out": _is_text,
    "err": _is_text,
    "output": _is_text,
    "exit": _is_exit,
}
