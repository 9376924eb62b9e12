"""Hostile expressions, dying workers and cancelled callers: each ends in one clear error, and the next
expression is evaluated as if nothing had been."""

import asyncio
import os
import resource
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.records.values import JSON
from pilothouse.workflows.expressions import processes
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.evaluator import Evaluator

SCOPE: dict[str, JSON] = {"params": {"l": list(range(9_000)), "s": "a" * 100_000, "n": 1}}

DOUBLINGS = "".join(f"cel.bind(v{n + 1}, v{n} + v{n}, " for n in range(24))


def _nested(levels: int) -> str:
    source = "1"
    for level in range(levels):
        source = f"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(x{level}, {source})"
    return source


HOSTILE = {
    "loops over literals": _nested(6),
    "2^30 elements": "[[0, 1].map(a, [0, 1])]" + ".map(x, x + x)" * 28 + ".size()",
    "doubled text": f"cel.bind(v0, 'aaaaaaaa', {DOUBLINGS}size(v24)" + ")" * 25,
    "doubled lists": f"cel.bind(v0, [1,2,3,4,5,6,7,8], {DOUBLINGS}size(v24)" + ")" * 25,
    "nested maps": "params.l.map(a, params.l.map(b, params.l.map(c, 1)))",
    "nested filters": "params.l.filter(a, params.l.filter(b, a == b).size() > 0)",
    "copies of a list": "params.l.map(a, params.l)",
    "copies of a text": "params.l.map(a, params.s + params.s).size()",
    "text that grows": "params.s.replace('a', params.s).size()",
    "pieces of pieces": "params.s.split('').map(a, params.s.split('')).size()",
    "regular expressions": "params.l.map(i, params.s.matches('(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)b'))",
    "a regular expression too large": "params.s.matches('((((a{1,100}){1,100}){1,100}){1,100})')",
    "500 parentheses": "(" * 500 + "1" + ")" * 500,
    "500 lists": "[" * 500 + "]" * 500,
    "500 macros": "[1].all(a, " * 500 + "true" + ")" * 500,
    "500 conditions": "true ? 1 : " * 500 + "1",
    "4,000 terms": "+".join(["1"] * 4_000),
    "4,000 fields": "params" + ".a" * 4_000,
    "2,000 brackets": "{" * 2_000,
    "2,000 quotes": "'" * 2_001,
    "10,000 characters": "1 " + "+ 1" * 3_333,
}


@pytest.fixture
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator(workers=1) as started:
        yield started


def _workers() -> set[int]:
    """The process ids of the workers that this process has."""
    return {int(entry.name) for entry in Path("/proc").glob("[0-9]*") if _is_worker(entry)}


def _is_worker(entry: Path) -> bool:
    try:
        parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        return parent == os.getpid() and b"expressions.worker" in (entry / "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


async def _worker(evaluator: Evaluator) -> int:
    """The one process of a started evaluator."""
    await evaluator.evaluate("1", {})
    (worker,) = _workers()
    return worker


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
async def test_a_hostile_expression_is_ended_and_the_next_one_works(evaluator: Evaluator, source: str) -> None:
    with pytest.raises((ExpressionError, ExpressionLimit)) as ended:
        await evaluator.evaluate(source, SCOPE)
    assert "twice" not in str(ended.value), "a limit must be recognised, not guessed"
    assert await evaluator.evaluate("params.n + 1", SCOPE) == 2


async def test_processor_time_is_limited(evaluator: Evaluator) -> None:
    with pytest.raises(ExpressionLimit, match="more than 200 ms of processor time"):
        await evaluator.evaluate(HOSTILE["regular expressions"], SCOPE)


async def test_memory_is_limited(evaluator: Evaluator) -> None:
    with pytest.raises(ExpressionLimit, match="more than 256 MiB of memory"):
        await evaluator.evaluate(HOSTILE["doubled text"], SCOPE)


async def test_a_worker_may_take_256_mib_more_than_it_has_and_no_more(evaluator: Evaluator) -> None:
    worker = await _worker(evaluator)
    soft, hard = resource.prlimit(worker, resource.RLIMIT_AS)
    has = int(_read(worker, "statm").split()[0]) * resource.getpagesize()
    assert soft == hard
    assert soft - has <= 256 * 2**20
    assert soft < 400 * 2**20


async def test_a_worker_knows_nothing_of_our_environment(evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PILOTHOUSE_SECRET", "canary")
    worker = await _worker(evaluator)
    assert _read(worker, "environ") == b""
    assert os.readlink(f"/proc/{worker}/cwd") == "/"


async def test_a_worker_that_hangs_is_given_up(evaluator: Evaluator) -> None:
    worker = await _worker(evaluator)
    os.kill(worker, signal.SIGSTOP)
    with pytest.raises(ExpressionLimit, match="no result after 2 s"):
        await evaluator.evaluate("2", {})
    assert await evaluator.evaluate("3", {}) == 3
    assert worker not in _workers()


async def test_a_worker_killed_while_it_waits_is_replaced(evaluator: Evaluator) -> None:
    worker = await _worker(evaluator)
    os.kill(worker, signal.SIGKILL)
    assert await evaluator.evaluate("1 + 1", {}) == 2


async def test_a_worker_killed_in_the_middle_is_replaced_and_the_request_sent_again(evaluator: Evaluator) -> None:
    worker = await _worker(evaluator)
    os.kill(worker, signal.SIGSTOP)
    asking = asyncio.create_task(evaluator.evaluate("params.n + 41", SCOPE))
    await _until_written()
    os.kill(worker, signal.SIGKILL)
    assert await asking == 42
    assert worker not in _workers()


DIES = "import os; os.write(1, bytes([0, 0, 0, 2]) + b'{}'); os.read(0, 4); os._exit(3)"


async def test_a_request_that_ends_two_workers_is_not_sent_a_third_time(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(processes, "_COMMAND", (sys.executable, "-c", DIES))
        with pytest.raises(ExpressionLimit, match=r"ended its worker process twice \(status 3\)"):
            await evaluator.evaluate("1", {})
    assert await evaluator.evaluate("1", {}) == 1


async def test_a_worker_that_does_not_start_is_no_fault_of_the_expression(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_COMMAND", (sys.executable, "-c", "raise SystemExit(1)"))
    with pytest.raises(RuntimeError, match="the expression worker does not start"):
        await evaluator.evaluate("1", {})


async def test_a_cancelled_call_leaves_a_working_pool(evaluator: Evaluator) -> None:
    worker = await _worker(evaluator)
    os.kill(worker, signal.SIGSTOP)
    asking = asyncio.create_task(evaluator.evaluate("'the wrong answer'", {}))
    waiting = asyncio.create_task(evaluator.evaluate("'the right answer'", {}))
    await _until_written()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await waiting == "the right answer"


async def test_calls_cancelled_at_any_moment_do_no_harm() -> None:
    async with Evaluator(workers=2) as evaluator:
        for turns in range(12):
            calls = [asyncio.create_task(evaluator.evaluate(f"{n} + {turns}", {})) for n in range(6)]
            for _ in range(turns * 3):
                await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert results[1::2] == [n + turns for n in (1, 3, 5)]
            assert len(_workers()) <= 2 + len(calls)


async def test_many_calls_at_once_get_their_own_answers() -> None:
    async with Evaluator(workers=2) as evaluator:
        calls = (evaluator.evaluate(f"item * 2 + {n % 7}", {"item": n}) for n in range(500))
        assert await asyncio.gather(*calls) == [n * 2 + n % 7 for n in range(500)]
        assert len(_workers()) == 2


async def test_hostile_calls_do_not_disturb_honest_ones() -> None:
    async with Evaluator(workers=2) as evaluator:
        hostile = [evaluator.evaluate(HOSTILE["nested maps"], SCOPE) for _ in range(4)]
        honest = [evaluator.evaluate(f"params.n + {n}", SCOPE) for n in range(50)]
        results = await asyncio.gather(*hostile, *honest, return_exceptions=True)
    assert all(isinstance(result, ExpressionLimit) for result in results[:4])
    assert results[4:] == [1 + n for n in range(50)]


async def test_no_process_is_left_behind_and_none_is_started_without_need() -> None:
    async with Evaluator(workers=2):
        assert _workers() == set()
    async with Evaluator(workers=2) as evaluator:
        await evaluator.evaluate("1", {})
        assert len(_workers()) == 1
    assert _workers() == set()


def _read(worker: int, name: str) -> bytes:
    return Path(f"/proc/{worker}/{name}").read_bytes()


async def _until_written() -> None:
    """Give a started call the loop until its request is on its way to the worker."""
    before = _writes()
    while _writes() == before:  # noqa: ASYNC110 - nothing tells that a pipe was written to
        await asyncio.sleep(0)


def _writes() -> int:
    counters = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(counters["syscw"])
