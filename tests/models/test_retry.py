"""Waiting between tries: what the server asks for, within reason, else growing with jitter."""

from datetime import UTC, datetime

import pytest

from pilothouse.models.provider import ModelFailure
from pilothouse.models.retry import RetryPolicy, parse_retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def failure(retry_after: float | None = None, *, retryable: bool = True) -> ModelFailure:
    return ModelFailure("F-DEP", "no", retryable, retry_after=retry_after)


def test_waits_grow_up_to_the_longest_and_end_with_the_attempts() -> None:
    policy = RetryPolicy(attempts=6, first=1.0, longest=5.0)
    assert [policy.wait(failure(), n, lambda: 1.0) for n in range(1, 7)] == [1.0, 2.0, 4.0, 5.0, 5.0, None]


def test_jitter_halves_a_wait_at_most() -> None:
    assert RetryPolicy(first=1.0).wait(failure(), 1, lambda: 0.0) == 0.5


def test_the_servers_wish_is_obeyed_but_never_shortens_the_wait() -> None:
    policy = RetryPolicy(first=1.0, patience=60.0)
    waits = [policy.wait(failure(asked), 1, lambda: 1.0) for asked in (7.0, 0.0, 60.0, 61.0)]
    assert waits == [7.0, 1.0, 60.0, None]


def test_a_final_failure_is_not_tried_again() -> None:
    assert RetryPolicy().wait(failure(retryable=False), 1) is None


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("12", 12.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Thu, 01 Jan 2026 00:00:30 -0000", 30.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("²", None),
        ("", None),
    ],
)
def test_retry_after_holds_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert parse_retry_after(header, NOW) == seconds
