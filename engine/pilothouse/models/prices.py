"""What a model's tokens cost. Pilothouse knows no price by itself: a built-in table would be wrong within weeks."""

from dataclasses import dataclass
from decimal import Decimal

from pilothouse.agents.messages import Cost, Usage

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens. What is read from or written to the provider's cache costs as much as other
    input where its own price is None: a bound on the cost is then reached too early, never too late."""

    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None

    def cost(self, usage: Usage) -> Cost:
        parts = {
            "input": usage.input * self.input / _MILLION,
            "output": usage.output * self.output / _MILLION,
            "cache_read": usage.cache_read * self._or_input(self.cache_read) / _MILLION,
            "cache_write": usage.cache_write * self._or_input(self.cache_write) / _MILLION,
        }
        total = sum(parts.values(), Decimal(0))
        return Cost(**{name: float(part) for name, part in parts.items()}, total=float(total))

    def _or_input(self, price: Decimal | None) -> Decimal:
        return self.input if price is None else price
