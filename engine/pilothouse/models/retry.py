"""When a failed model call is tried again, and after how long."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from pilothouse.models.provider import ModelFailure


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """At most `attempts` tries. Waits are seconds: `first`, doubled each time up to `longest`, with jitter.

    What the server asks for in Retry-After is obeyed up to `patience`; beyond that the failure is given to
    the caller, who can wait without holding a connection's worth of resources.
    """

    attempts: int = 3
    first: float = 0.5
    longest: float = 8.0
    patience: float = 60.0

    def wait(self, failure: ModelFailure, attempt: int, jitter: Callable[[], float] = random.random) -> float | None:
        """Seconds to wait after the failed `attempt` (the first is 1), or None to give up."""
        if not failure.retryable or attempt >= self.attempts:
            return None
        backoff = min(self.longest, self.first * 2.0 ** (attempt - 1)) * (0.5 + jitter() / 2)
        if failure.retry_after is None:
            return backoff
        return max(backoff, failure.retry_after) if failure.retry_after <= self.patience else None


def parse_retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds from a Retry-After header, which holds seconds or a date (RFC 9110); None if it says nothing."""
    if value is None:
        return None
    if value.strip().isdecimal():
        return float(value)
    try:
        date = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())
