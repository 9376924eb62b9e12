"""An agent that is asked has its own limits, and what its caller has left."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.bounds import Limits
from pilothouse.agents.delegation.account import Account
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from tests.agents.delegation.scene import Scene, agent, asks, says, text_of, uses
from tests.agents.desk import Desk, DyingStore, Killed


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


def budget(**budget: Any) -> dict[str, Any]:
    return {"governance": {"budget": budget}}


def busy(turns: int, tokens: int = 0, **spec: Any) -> dict[str, Any]:
    """An agent that looks at other files in each turn before it answers."""
    looks = [uses(("file_list", {"pattern": f"*.{number}"}), tokens=tokens) for number in range(turns)]
    return agent(*looks, says("Done.", tokens), tools=["file_list"], **spec)


async def test_tokens_that_the_caller_has_left_bound_the_asked_agent_within_its_work(
    desk: Desk, sandbox: Sandbox
) -> None:
    boss = agent(asks("scribe", tokens=10), says("Thanks."), tools=["scribe"], **budget(tokens=100))
    scene = Scene(desk, sandbox, boss=boss, scribe=busy(9, tokens=30))
    result = await scene.play()
    [answer] = await scene.results()
    assert "F-RES ModelFailed: the tokens are used up" in text_of(answer)
    assert (answer["usage"]["totalTokens"], answer["details"]["turns"]) == (90, 3)
    assert result.failure is not None
    assert result.failure.reason == "TokenLimit"


async def test_agents_that_work_side_by_side_share_what_is_left(desk: Desk, sandbox: Sandbox) -> None:
    """Each could spend 300 by itself. The last answer of each may have been under way when the tokens came to their
    end."""
    boss = agent(asks("scribe", "scribe", "scribe"), says("Thanks."), tools=["scribe"], **budget(tokens=100))
    scene = Scene(desk, sandbox, boss=boss, scribe=busy(9, tokens=30))
    await scene.play()
    spent = [answer["usage"]["totalTokens"] for answer in await scene.results()]
    assert 100 <= sum(spent) < 100 + 3 * 30


async def test_the_budget_of_the_first_holds_below_the_second(desk: Desk, sandbox: Sandbox) -> None:
    boss = agent(asks("lead", tokens=10), says("Thanks."), tools=["lead"], **budget(tokens=100))
    lead = agent(asks("scribe", tokens=10), says("Fine."), tools=["scribe"], **budget(tokens=1_000))
    scene = Scene(desk, sandbox, boss=boss, lead=lead, scribe=busy(9, tokens=30))
    await scene.play()
    [answer] = await scene.results()
    assert "F-RES" in text_of(answer)
    assert answer["usage"]["totalTokens"] == 10 + 90


@pytest.mark.parametrize(
    ("own", "turns", "reason"), [(2, 2, "TurnLimit"), (20, 3, "TurnLimit"), (None, 3, "TurnLimit")]
)
async def test_an_asked_agent_has_its_own_turns_and_at_most_those_that_its_caller_has_left(
    desk: Desk, sandbox: Sandbox, own: int | None, turns: int, reason: str
) -> None:
    boss = agent(asks("scribe"), says("Thanks."), tools=["scribe"], **budget(turns=4))
    scribe = busy(9, **(budget(turns=own) if own else {}))
    scene = Scene(desk, sandbox, boss=boss, scribe=scribe)
    result = await scene.play()
    assert result.failure is None
    [answer] = await scene.results()
    assert (answer["details"]["turns"], answer["details"]["error"]) == (turns, reason)


async def test_nobody_is_asked_in_the_last_turn(desk: Desk) -> None:
    boss = agent(asks("scribe"), says("Thanks."), tools=["scribe"], **budget(turns=1))
    scene = Scene(desk, boss=boss, scribe=agent(says("Written.")))
    await scene.play()
    [answer] = await scene.results()
    assert "F-RES TurnLimit: the budget of 1 turns is used up" in text_of(answer)
    assert await scene.others() == []


@pytest.mark.parametrize(
    ("of_the_caller", "own", "most"),
    [(None, None, None), (None, 5.0, 5.0), (900.0, 5.0, 5.0), (0.0, 5.0, 0.0), (0.0, None, 0.0)],
)
def test_time_is_the_shorter_of_both(of_the_caller: float | None, own: float | None, most: float | None) -> None:
    assert Account(Limits(duration=of_the_caller)).within(Limits(duration=own)).duration == most


async def test_what_was_used_before_a_restart_counts(desk: Desk, sandbox: Sandbox) -> None:
    """The process is lost in the middle of the asked agent's work; the next one goes on with what is left."""
    boss = agent(asks("scribe", tokens=10), says("Thanks."), tools=["scribe"], **budget(tokens=100))
    scene = Scene(desk, sandbox, boss=boss, scribe=busy(9, tokens=30))
    store = DyingStore(await desk.attempt(), 9, after=True)
    with pytest.raises(Killed):
        await scene.play(store)
    [before] = await scene.others()
    assert sum(message["role"] == "assistant" for message in before) == 1
    await scene.play()
    [answer] = await scene.results()
    assert answer["usage"]["totalTokens"] == 90
