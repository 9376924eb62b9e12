"""Delays between retries: never negative, never above the cap, never an overflow."""

import math

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.workflows.backoff import retry_delay
from pilothouse.workflows.plan import RetryPolicy


def finite(least: float, most: float) -> st.SearchStrategy[float]:
    return st.floats(least, most, allow_nan=False, allow_infinity=False)


policies = st.builds(
    RetryPolicy,
    attempts=st.just(1),
    delay=finite(0, 1e9),
    factor=finite(1, 1e6),
    max_delay=finite(0.001, 1e9),
    jitter=st.booleans(),
)
nonces = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(policies, st.integers(1, 10_000), nonces)
def test_a_delay_is_finite_and_at_most_the_cap(policy: RetryPolicy, attempt: int, nonce: str) -> None:
    delay = retry_delay(policy, attempt, nonce)
    assert math.isfinite(delay)
    assert 0 <= delay <= policy.max_delay


@given(policies, st.integers(1, 10_000), nonces)
def test_delays_grow_with_the_attempts(policy: RetryPolicy, attempt: int, nonce: str) -> None:
    now, later = (retry_delay(policy, number, nonce) for number in (attempt, attempt + 1))
    assert later >= now * (1 - 1e-9)


@given(st.integers(1, 60))
def test_without_jitter_the_delay_is_the_documented_formula(attempt: int) -> None:
    policy = RetryPolicy(delay=5, factor=2, max_delay=300)
    assert math.isclose(retry_delay(policy, attempt, "0" * 32), min(5 * 2 ** (attempt - 1), 300))


@given(nonces)
def test_jitter_draws_between_half_and_all_and_is_the_same_each_time(nonce: str) -> None:
    policy = RetryPolicy(delay=10, jitter=True)
    delay = retry_delay(policy, 1, nonce)
    assert 5 <= delay <= 10.000001
    assert delay == retry_delay(policy, 1, nonce)
