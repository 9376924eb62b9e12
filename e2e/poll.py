"""Waiting for what no `kubectl wait` can express, with a bound."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.2
"""Seconds between two looks."""


def until(look: Callable[[], T | None], what: str, seconds: float = 90) -> T:
    """What `look` finds, as soon as it finds something; fails after `seconds`, telling `what` did not come about."""
    end = time.monotonic() + seconds
    while (found := look()) is None or found is False:
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(PAUSE)
    return found
