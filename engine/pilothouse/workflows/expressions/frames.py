"""What the evaluator and its worker processes agree on: messages, their frames and the limits.

A frame is the length of the body in four bytes, big end first, then the body: JSON in UTF-8. A worker sends
an empty object once it is ready, then one reply for each request.

* `{"op": "compile", "source", "names"}` -> `{"references", "type"}`
* `{"op": "evaluate", "source", "names", "scope"}` -> `{"value"}`
* any request -> `{"error": {"kind", "message", "column"}}`, the kinds as in `Kind`
"""

from enum import StrEnum

LENGTH_BYTES = 4

MEMORY_LIMIT = 256 * 1024 * 1024
"""Bytes of address space that a request may take beyond what a worker that waits has."""

CPU_LIMIT = 0.2
"""Seconds of processor time for one request. Time on the clock would fail honest work on a busy machine."""

RESULT_LIMIT = 64 * 1024
"""Bytes of a result as JSON."""

MEMORY_EXIT = 75
"""The exit status of a worker whose memory limit was reached."""


class Kind(StrEnum):
    """Who has to put an error into words."""

    COMPILE = "compile"
    """The library, on compiling."""
    EVALUATE = "evaluate"
    """The library, on evaluating."""
    PLAIN = "plain"
    """Nobody any more: the message is ours."""
    LIMIT = "limit"
    """Nobody any more, and it is a limit."""
