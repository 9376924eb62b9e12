"""Cost: exact in the decimals that the Agent writes, and never less than what is billed."""

from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.agents.messages import Cost, Usage
from pilothouse.models.factory import create
from pilothouse.models.prices import Prices
from tests.models.dialects import CHAT_DIALECT, MESSAGES_DIALECT, events, message_end, message_start
from tests.models.wire import DONE, Reply, collect, delta, done, raw_server, request, sse

counts = st.integers(0, 10**9)
dollars = st.decimals(0, 1000, places=4)


def test_each_kind_of_token_has_its_price() -> None:
    prices = Prices(Decimal("3"), Decimal("15"), cache_read=Decimal("0.3"), cache_write=Decimal("3.75"))
    cost = prices.cost(Usage.of(input=1000, output=200, cache_read=10_000, cache_write=400))
    assert cost == Cost(input=0.003, output=0.003, cache_read=0.003, cache_write=0.0015, total=0.0105)


def test_what_the_cache_holds_costs_as_much_as_other_input_without_a_price_of_its_own() -> None:
    cost = Prices(Decimal(2), Decimal(0)).cost(Usage.of(cache_read=1_000_000, cache_write=500_000))
    assert (cost.cache_read, cost.cache_write, cost.total) == (2.0, 1.0, 3.0)


@given(counts, counts, dollars, dollars)
def test_the_cost_is_that_of_exact_arithmetic(input: int, output: int, one: Decimal, other: Decimal) -> None:
    exact = (Fraction(one) * input + Fraction(other) * output) / 1_000_000
    assert Prices(one, other).cost(Usage.of(input=input, output=output)).total == float(exact)


async def test_an_answer_carries_its_cost_and_without_prices_none() -> None:
    usage = {"prompt_tokens": 30, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 10}}
    stream = sse(delta("stop", content="a"), {"choices": [], "usage": usage}) + DONE
    async with raw_server(Reply([stream])) as server:
        priced = create("OpenAI", model="m", base_url=server.url, prices=Prices(Decimal(1), Decimal(10), Decimal(0)))
        assert done(await collect(priced)).message.usage.cost == Cost(input=0.00002, output=0.0001, total=0.00012)
        assert done(await collect(CHAT_DIALECT.provider(server.url))).message.usage.cost == Cost()


async def test_a_call_that_failed_half_way_has_cost_what_was_counted() -> None:
    stream = events(message_start(input_tokens=1000), *message_end("refusal", output_tokens=100))
    async with raw_server(Reply([stream])) as server:
        provider = MESSAGES_DIALECT.provider(server.url, prices=Prices(Decimal(1), Decimal(10)))
        last = (await collect(provider))[-1]
    assert last.type == "error"
    assert last.message.usage.cost.total == 0.002


async def test_a_scripted_turn_is_priced_like_any_other() -> None:
    script = [{"text": "hi", "usage": {"input": 1000, "output": 100}}]
    provider = create("Scripted", script=script, prices=Prices(Decimal(1), Decimal(10)))
    usage = done(await collect(provider, request())).message.usage
    assert (usage.total_tokens, usage.cost.total) == (1100, 0.002)
