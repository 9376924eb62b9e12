"""The delay before a retry: exponential, capped, and the same for the same attempt wherever it is computed."""

import math

from pilothouse.workflows.plan import RetryPolicy


def retry_delay(policy: RetryPolicy, attempt: int, nonce: str) -> float:
    """Seconds to wait after attempt number `attempt` failed: `delay * factor ** (attempt - 1)`, at most
    `max_delay`. With jitter, between half of that and all of it, drawn from the attempt's nonce so that
    every reader of the rows comes to the same time."""
    full = _capped(policy, attempt)
    if not policy.jitter:
        return full
    share = int(nonce[:8] or "0", 16) / 0xFFFFFFFF
    return full * (0.5 + share / 2)


def _capped(policy: RetryPolicy, attempt: int) -> float:
    if policy.delay <= 0:
        return 0.0
    exponent = math.log(policy.delay) + (attempt - 1) * math.log(max(policy.factor, 1.0))
    if exponent >= math.log(policy.max_delay):
        return policy.max_delay
    return math.exp(exponent)
