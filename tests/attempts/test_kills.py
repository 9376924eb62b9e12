"""Kill -9 of the agent's process at each write of its store, which it reaches through a gateway: the Pod that follows
goes on, and no side effect happens twice."""

from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pilothouse.records.states import AttemptState
from pilothouse.records.values import Inline
from pilothouse.store.postgres import PostgresRunStore
from tests.attempts.scene import Machine, Scene, a_scene, says, scripted

WRITES = 15
"""Writes of an attempt that is not killed."""

SPEC = scripted(
    {"toolCalls": [{"name": "file_write", "arguments": {"path": "plan.md", "text": "first count"}}]},
    {
        "toolCalls": [
            {"name": "shell", "arguments": {"command": "echo counted >> shell"}},
            {"name": "file_read", "arguments": {"path": "plan.md"}},
        ]
    },
    {"toolCalls": [{"name": "shell", "arguments": {"command": "echo counted >> again"}}]},
    says('{"counted": true}'),
    outputs={"schema": {"type": "object", "required": ["counted"], "properties": {"counted": {"type": "boolean"}}}},
)

EFFECTS = ("shell", "again")


class Trial:
    """One step, from Pod to Pod until it has an outcome. The workspace stays, so that its effects can be counted."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self._scene = scene
        self._folder = folder
        self.died: list[int] = []

    async def pod(self, *kill: str) -> None:
        """A Pod carries out the next attempt, to its end or its death."""
        async with AsyncExitStack() as stack:
            machine = Machine(self._folder, stack)
            environment = await self._scene.environment(SPEC, sandbox=True)
            agent = await machine.agent(await self._scene.attempt(), environment, *kill)
            await machine.sandbox()
            self.died.append(await agent.end())

    async def to_the_end(self, *kill: str) -> None:
        await self.pod(*kill)
        if (await self._scene.newest()).state is AttemptState.OPEN:
            await self.pod()

    def effects(self) -> Counter[str]:
        files = (self._folder / "workspace" / name for name in EFFECTS)
        return Counter({file.name: file.read_text().count("counted") for file in files if file.exists()})


async def right(scene: Scene, trial: Trial) -> str:
    """How it ended; fails if something was lost or repeated."""
    attempt, effects = await scene.newest(), trial.effects()
    assert max(effects.values(), default=0) <= 1, f"repeated: {effects}"
    if attempt.state is AttemptState.SUCCEEDED:
        assert effects == Counter(EFFECTS), "lost"
        assert attempt.outputs["data"] == Inline({"counted": True})
    else:
        assert (attempt.state, attempt.failure and attempt.failure.reason) == (AttemptState.FAILED, "OutcomeUnknown")
    return attempt.state


async def killed(store: PostgresRunStore, folder: Path, number: int, moment: str) -> str:
    async with a_scene(store) as scene:
        trial = Trial(scene, folder)
        await trial.to_the_end(str(number), moment)
        assert trial.died[0] == -9
        assert trial.died[1:] in ([0], [])
        return await right(scene, trial)


@pytest.mark.feature("B44")
@pytest.mark.parametrize("number", range(1, WRITES + 1))
async def test_a_pod_that_is_killed_at_a_write_has_a_successor_that_goes_on(
    postgres: PostgresRunStore, tmp_path: Path, number: int
) -> None:
    await killed(postgres, tmp_path / "pod", number, ("before", "after")[number % 2])


@pytest.mark.soak
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", range(1, WRITES + 1))
async def test_a_pod_that_is_killed_at_any_moment_of_a_write(
    postgres: PostgresRunStore, tmp_path: Path, number: int, moment: str
) -> None:
    await killed(postgres, tmp_path / "pod", number, moment)


async def test_there_are_no_more_writes_than_those(postgres: PostgresRunStore, tmp_path: Path) -> None:
    async with a_scene(postgres) as scene:
        trial = Trial(scene, tmp_path / "pod")
        await trial.to_the_end(str(WRITES + 1), "before")
        assert trial.died == [0]
        assert await right(scene, trial) == AttemptState.SUCCEEDED
