"""Server-sent events are read alike wherever the bytes were cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.models.sse import LineTooLongError, SseDecoder

STREAM = (
    "\ufeff: hello\n\ndata: one\n\nevent: x\nid: 1\ndata:two\r\ndata: lines\r\n\r\n"
    "data\n\ndata: grüße 🚀\r\rretry: 5\rdata:  spaced\n\n\ndata: never ended"
).encode()
EVENTS = ["one", "two\nlines", "grüße 🚀", " spaced"]


@given(st.lists(st.integers(0, len(STREAM)), max_size=12).map(sorted))
def test_events_do_not_depend_on_where_chunks_are_cut(cuts: list[int]) -> None:
    decoder = SseDecoder(max_line=100)
    edges = [0, *cuts, len(STREAM)]
    chunks = [STREAM[start:end] for start, end in pairwise(edges)]
    assert [event for chunk in chunks for event in decoder.feed(chunk)] == EVENTS


def test_one_byte_at_a_time() -> None:
    decoder = SseDecoder(max_line=100)
    assert [event for byte in STREAM for event in decoder.feed(bytes([byte]))] == EVENTS


def test_a_line_over_the_limit_is_refused_before_its_end() -> None:
    decoder = SseDecoder(max_line=10)
    decoder.feed(b"data: 1234")
    with pytest.raises(LineTooLongError, match="longer than 10 bytes"):
        decoder.feed(b"5")
