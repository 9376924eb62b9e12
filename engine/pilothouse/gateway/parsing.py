"""Bodies as JSON: no more values than memory holds, however few bytes each of them has."""

import re

from pilothouse.records.values import ValueRefused
from pilothouse.store.remote.wire import Fields, parse

MOST_VALUES = 1_000_000
"""Values of one body. Each takes up to a hundred bytes when it is read, and some take two in the body."""

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def read_body(data: bytes) -> Fields:
    """The object that the body holds. Raises Misread, and ValueRefused for more than `MOST_VALUES` values."""
    if _values(data) > MOST_VALUES and _values(_STRING.sub(b"", data)) > MOST_VALUES:
        raise ValueRefused(f"the body has more than {MOST_VALUES:,} values; no store takes so many at once")
    return parse(data)


def _values(data: bytes) -> int:
    """At least as many as there are, where no string is: each but the first follows a bracket or a comma."""
    return sum(data.count(mark) for mark in (b"[", b"{", b","))
