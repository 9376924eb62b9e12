"""How a model call deals with time and size."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from pilothouse.models.http import Limits
from pilothouse.models.retry import RetryPolicy


@dataclass(frozen=True, slots=True)
class Patience:
    """`sleep` and `jitter` are what waiting between tries is made of."""

    limits: Limits = field(default_factory=Limits)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Callable[[], float] = random.random
