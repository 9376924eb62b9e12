"""A process that dies while one agent waits for another: the next one goes on in both sessions."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.records.failures import OUTCOME_UNKNOWN
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from tests.agents.delegation.scene import Scene, agent, asks, says, text_of, uses
from tests.agents.desk import Desk, Desks, DyingStore, Killed

FAR = 10_000


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


def scene(desk: Desk, sandbox: Sandbox) -> Scene:
    """Four agents in three generations, nine turns, tools that may be used again."""
    return Scene(
        desk,
        sandbox,
        boss=agent(
            asks("lead", "clerk", tokens=1), asks("clerk", tokens=2), says("Thanks.", 4), tools=["lead", "clerk"]
        ),
        lead=agent(asks("scribe", tokens=8), says("Led.", 16), tools=["scribe"]),
        scribe=agent(
            uses(("file_write", {"path": "a", "text": "a"}), tokens=32), says("Written.", 64), tools=["file_write"]
        ),
        clerk=agent(says("Filed.", 128)),
    )


async def writes(desks: Desks, sandbox: Sandbox) -> int:
    desk = await desks.new()
    store = DyingStore(await desk.attempt(), FAR, after=False)
    await scene(desk, sandbox).play(store)
    return len(store.writes)


@pytest.mark.feature("B85")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_kill_at_any_write_repeats_no_answer_and_asks_nobody_twice(
    desks: Desks, sandbox: Sandbox, after: bool
) -> None:
    whole = await _told(scene(desk := await desks.new(), sandbox), desk)
    number = await writes(desks, sandbox)
    assert number > 30
    for at in range(number):
        one = scene(desk := await desks.new(), sandbox)
        with pytest.raises(Killed):
            await one.play(DyingStore(await desk.attempt(), at, after=after))
        assert await _told(one, desk) == whole, f"killed at write {at}"


async def _told(one: Scene, desk: Desk) -> tuple[object, ...]:
    """The outcome, and all that was said in all sessions: a session that was begun twice would show."""
    result = await one.play()
    said = [[(message["role"], text_of(message)) for message in each] for each in await one.others()]
    own = [(message["role"], text_of(message)) for message in await one.own()]
    lineages = [sum(entry.type == "custom" for entry in each.entries) for each in (await one.sessions()).values()]
    return result.failure, result.outputs["usage"], own, sorted(said), sorted(lineages)


async def test_an_effect_of_unknown_outcome_is_the_callers_failure_too(
    desks: Desks, sandbox: Sandbox, tmp_path: Path
) -> None:
    """The shell did its work: whoever asked must not go on as if it had only failed."""

    def scene(desk: Desk) -> Scene:
        scribe = agent(uses(("shell", {"command": "echo x >> effects"})), says("Written."), tools=["shell"])
        return Scene(desk, sandbox, boss=agent(asks("scribe"), says("Thanks."), tools=["scribe"]), scribe=scribe)

    desk = await desks.new()
    whole = DyingStore(await desk.attempt(), FAR, after=False)
    await scene(desk).play(whole)
    last_intent = len(whole.writes) - 1 - whole.writes[::-1].index("intend")
    one = scene(desk := await desks.new())
    with pytest.raises(Killed):
        await one.play(DyingStore(await desk.attempt(), last_intent + 1, after=False))
    result = await one.play()
    assert result.failure is not None
    assert result.failure.reason == OUTCOME_UNKNOWN
    assert result.failure.message.startswith("in the agent `scribe`: the call")
    assert (tmp_path / "effects").read_text() == "x\n" * 2
