"""The work queue: each key in one pair of hands, sooner rather than later, and patient with what fails."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pilothouse_operator.workqueue import FIRST_PAUSE, LONGEST_PAUSE, WorkQueue
from tests.operator.clock import Clock

TURNS = 20


@asynccontextmanager
async def workers(queue: WorkQueue[str], do: Callable[[str], Awaitable[None]], count: int = 1) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(queue.work(do)) for _ in range(count)]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(end) for end in ends} == {asyncio.CancelledError}, "a worker died"


async def turns() -> None:
    """Whatever can go on now has gone on."""
    for _ in range(TURNS):
        await asyncio.sleep(0)


class Hands:
    """Workers' work that a test lets go on. `seen` are the keys in the order in which they were begun."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.at_once: Counter[str] = Counter()
        self.go = asyncio.Semaphore(0)

    async def hold(self, key: str) -> None:
        self.seen.append(key)
        self.at_once[key] += 1
        assert self.at_once[key] == 1, "two workers have one key"
        await self.go.acquire()
        self.at_once[key] -= 1

    async def note(self, key: str) -> None:
        self.seen.append(key)


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue(lambda key: key[:1])


@pytest.fixture
async def hands() -> Hands:
    return Hands()


async def test_a_key_that_is_added_often_is_worked_on_once(queue: WorkQueue[str], hands: Hands) -> None:
    for key in "abab":
        queue.add(key)
    assert len(queue) == 2
    async with workers(queue, hands.note):
        await turns()
    assert hands.seen == ["a", "b"]


async def test_a_key_is_in_one_pair_of_hands_and_comes_again_after(queue: WorkQueue[str], hands: Hands) -> None:
    async with workers(queue, hands.hold, 4):
        queue.add("a")
        await turns()
        for _ in range(3):
            queue.add("a")
        queue.add("b")
        await turns()
        assert hands.seen == ["a", "b"]
        hands.go.release()
        await turns()
        assert hands.seen == ["a", "b", "a"]
        for _ in range(2):
            hands.go.release()
        await turns()
        assert hands.seen == ["a", "b", "a"]


async def test_a_key_that_comes_again_and_again_starves_no_other(queue: WorkQueue[str]) -> None:
    seen: list[str] = []

    async def again(key: str) -> None:
        seen.append(key)
        if key == "a":
            queue.add("a")
        await asyncio.sleep(0)

    for key in "abc":
        queue.add(key)
    async with workers(queue, again):
        await turns()
    assert seen[:4] == ["a", "b", "c", "a"]


async def test_lanes_take_turns_however_many_keys_one_has(queue: WorkQueue[str], hands: Hands) -> None:
    for key in ("a1", "a2", "a3", "b1", "a4", "c1", "b2"):
        queue.add(key)
    assert len(queue) == 7
    async with workers(queue, hands.note):
        await turns()
    assert hands.seen == ["a1", "b1", "c1", "a2", "b2", "a3", "a4"]


async def test_a_lane_that_is_never_empty_starves_no_other(queue: WorkQueue[str]) -> None:
    seen: list[str] = []

    async def again(key: str) -> None:
        seen.append(key)
        if key.startswith("a"):
            queue.add(key)
        await asyncio.sleep(0)

    for number in range(9):
        queue.add(f"a{number}")
    queue.add("b")
    async with workers(queue, again):
        await turns()
    assert seen[:3] == ["a0", "b", "a1"]


async def test_later_is_not_before_its_time(queue: WorkQueue[str], hands: Hands, clock: Clock) -> None:
    async with workers(queue, hands.note, 3):
        queue.add("a", 10)
        await turns()
        clock.advance(9)
        await turns()
        assert hands.seen == []
        clock.advance(1.1)
        await turns()
        assert hands.seen == ["a"]
        clock.advance(100)
        await turns()
        assert hands.seen == ["a"]


@pytest.mark.parametrize("delays", [(10, 5), (5, 10), (10, 5, 7)])
async def test_of_several_times_the_first_counts(
    queue: WorkQueue[str], hands: Hands, clock: Clock, delays: tuple[float, ...]
) -> None:
    async with workers(queue, hands.note):
        for delay in delays:
            queue.add("a", delay)
        await turns()
        clock.advance(5.1)
        await turns()
        assert hands.seen == ["a"]
        clock.advance(100)
        await turns()
        assert hands.seen == ["a"]


async def test_now_does_not_take_the_place_of_later(queue: WorkQueue[str], hands: Hands, clock: Clock) -> None:
    async with workers(queue, hands.note):
        queue.add("a", 10)
        queue.add("a")
        await turns()
        assert hands.seen == ["a"]
        clock.advance(10.1)
        await turns()
        assert hands.seen == ["a", "a"]


async def test_a_time_that_comes_while_the_key_is_worked_on_is_kept(
    queue: WorkQueue[str], hands: Hands, clock: Clock
) -> None:
    async with workers(queue, hands.hold, 2):
        queue.add("a")
        await turns()
        queue.add("a", 1)
        clock.advance(1.1)
        await turns()
        assert hands.seen == ["a"]
        hands.go.release()
        await turns()
        assert hands.seen == ["a", "a"]


async def test_a_sooner_time_wakes_who_waits_for_a_later_one(queue: WorkQueue[str], hands: Hands, clock: Clock) -> None:
    async with workers(queue, hands.note):
        queue.add("a", 1000)
        await turns()
        queue.add("b", 1)
        await turns()
        clock.advance(1.1)
        await turns()
        assert hands.seen == ["b"]


async def test_pauses_grow_with_each_failure_up_to_the_longest_and_begin_anew(queue: WorkQueue[str]) -> None:
    longest = FIRST_PAUSE
    for _ in range(20):
        assert longest / 2 <= queue.failed("a") <= longest
        longest = min(longest * 2, LONGEST_PAUSE)
    assert longest == LONGEST_PAUSE
    assert queue.failed("b") <= FIRST_PAUSE, "each key has failures of its own"
    queue.succeeded("a")
    assert queue.failed("a") <= FIRST_PAUSE


async def test_a_key_may_fail_for_days(queue: WorkQueue[str]) -> None:
    for _ in range(2_000):
        pause = queue.failed("a")
    assert LONGEST_PAUSE / 2 <= pause <= LONGEST_PAUSE


async def test_what_failed_comes_again_after_its_pause(queue: WorkQueue[str], hands: Hands, clock: Clock) -> None:
    pause = queue.failed("a")
    async with workers(queue, hands.note):
        await turns()
        assert hands.seen == []
        clock.advance(pause + 0.1)
        await turns()
    assert hands.seen == ["a"]


async def test_a_key_whose_worker_was_ended_is_free_again(queue: WorkQueue[str], hands: Hands) -> None:
    async with workers(queue, hands.hold):
        queue.add("a")
        await turns()
        queue.add("a")
    assert hands.seen == ["a"]
    hands.at_once.clear()
    async with workers(queue, hands.note):
        await turns()
    assert hands.seen == ["a", "a"], "what was asked for meanwhile is not lost"


async def test_many_workers_share_many_keys(queue: WorkQueue[str], clock: Clock) -> None:
    done: Counter[str] = Counter()

    async def do(key: str) -> None:
        await asyncio.sleep(0)
        done[key] += 1

    async with workers(queue, do, 16):
        for number in range(200):
            queue.add(str(number), after=(number % 3) * 10.0)
        for _ in range(4):
            clock.advance(10)
            await turns()
    assert done == {str(number): 1 for number in range(200)}
    assert len(queue) == 0
