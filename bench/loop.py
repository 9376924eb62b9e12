"""What a turn with one tool call costs, against LangGraph and pydantic-ai in the same run.

A turn's time is that of a whole conversation, until its last write is stored, divided by its turns: so it also counts
what an engine writes behind its own back. The engines take turns, so that the machine's drift meets all alike.
"""

import asyncio
from collections.abc import Mapping

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from bench.ground import PlainInserts, server
from bench.measure import Ratio, Report, Series, Target, print_report, timed
from bench.peers import langgraph, pydantic_ai
from bench.turns import ANSWER, TURNS, Engine, pilothouse
from pilothouse.store.memory import MemoryRunStore
from pilothouse.store.postgres import open_store

ROUNDS = 10
"""Conversations of each engine, besides one to warm up."""

STORED = "a turn, Postgres"
IN_MEMORY = "a turn, in memory"
LANGGRAPH = "LangGraph, its Postgres saver"
LANGGRAPH_SYNC = "LangGraph, its Postgres saver, sync"
PYDANTIC_AI = "pydantic-ai, in memory"


async def measure() -> Report:
    async with (
        server() as dsn,
        open_store(dsn) as store,
        AsyncPostgresSaver.from_conn_string(dsn) as saver,
        PlainInserts.into(dsn) as plain,
    ):
        await saver.setup()
        engines = {
            STORED: pilothouse(store),
            LANGGRAPH: langgraph(saver, "async"),
            LANGGRAPH_SYNC: langgraph(saver, "sync"),
            IN_MEMORY: pilothouse(MemoryRunStore()),
            PYDANTIC_AI: pydantic_ai,
        }
        turns = await _alternate(engines, plain)
    return _report(
        [Series(what, times) for what, times in turns.items()], Series("one insert and commit", plain.seconds)
    )


async def _alternate(engines: Mapping[str, Engine], plain: PlainInserts) -> Mapping[str, list[float]]:
    turns: dict[str, list[float]] = {what: [] for what in engines}
    for number in range(ROUNDS + 1):
        for what, engine in engines.items():
            seconds = await _a_turn(engine)
            if number > 0:
                turns[what].append(seconds)
        for _ in range(TURNS):
            await plain.one()
    return turns


async def _a_turn(engine: Engine) -> float:
    answers: list[str] = []

    async def conversation() -> None:
        answers.append(await converse())

    async with engine() as converse:
        seconds = await timed(conversation())
    assert answers == [ANSWER], f"the conversation went wrong: {answers}"
    return seconds / TURNS


def _report(turns: list[Series], insert: Series) -> Report:
    times = {series.what: series.p50 for series in turns}

    def ratio(ours: str, theirs: str, target: Target | None = None) -> Ratio:
        return Ratio(f"{ours}, p50", theirs, times[ours], times[theirs], target)

    return Report(
        f"The loop: {ROUNDS} conversations of {TURNS} turns with one tool call each",
        (insert, *turns),
        (
            ratio(STORED, LANGGRAPH, Target(0.5, strict=True)),
            ratio(STORED, LANGGRAPH_SYNC),
            ratio(IN_MEMORY, PYDANTIC_AI, Target(1, strict=True)),
        ),
    )


if __name__ == "__main__":
    print_report(asyncio.run(measure()))
