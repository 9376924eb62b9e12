"""Server-sent events, decoded from bytes as they arrive (WHATWG HTML, "server-sent events")."""

import re

_LINE_END = re.compile(rb"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class LineTooLongError(ValueError):
    """A line passed the decoder's limit; the rest of the stream is of no use."""


class SseDecoder:
    """Feeds on chunks cut anywhere, also inside a character or between CR and LF.

    Only the data of an event is given back: what the event is called, its id and the server's wish for a
    reconnection time mean nothing to an answer that is read once. An event without its closing blank line
    counts as not sent.
    """

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._line = bytearray()
        self._data: list[bytes] = []
        self._after_cr = False
        self._first = True

    def feed(self, chunk: bytes) -> list[str]:
        """The data of the events that `chunk` completes. Raises `LineTooLongError`."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if not chunk:
            return []
        self._after_cr = chunk.endswith(b"\r")
        head, *rest = _LINE_END.split(chunk)
        events = []
        self._grow(head)
        for piece in rest:
            events += self._end_of_line()
            self._grow(piece)
        return events

    def _grow(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) > self._max_line:
            raise LineTooLongError(f"a line of the stream is longer than {self._max_line} bytes")

    def _end_of_line(self) -> list[str]:
        line = bytes(self._line)
        self._line.clear()
        if self._first:
            line, self._first = line.removeprefix(_BOM), False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        return []

    def _dispatch(self) -> list[str]:
        data = b"\n".join(self._data).decode("utf-8", "replace")
        self._data.clear()
        return [data] if data else []
