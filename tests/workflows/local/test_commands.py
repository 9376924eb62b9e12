"""Commands as processes of this machine: begun at most once, adopted, stopped, and honest about what became of them."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import Attempt, AttemptRef, RunRef, StepId
from pilothouse.records.states import AttemptState
from pilothouse.records.values import Inline
from pilothouse.workflows.commands.entrypoint import TAKEN
from pilothouse.workflows.local import place as places
from pilothouse.workflows.local.place import Place
from pilothouse.workflows.work import CommandWork, Text, ValueSource
from tests.workflows.local.machine import Machine, machine

__all__ = ["machine"]

RUN = RunRef(UUID(int=1), UUID(int=2))
TOO_LATE = Failure(FailureCode.TMO, "too late")


def new_attempt() -> Attempt:
    ref = AttemptRef(RUN, uuid4(), 1)
    return Attempt(ref, StepId("a"), 1, 0, uuid4().hex, AttemptState.OPEN, datetime.now(UTC))


async def test_a_command_runs_in_its_own_folder_with_its_files_and_its_environment(machine: Machine) -> None:
    runner, attempt = machine.runner(), new_attempt()
    secret = ValueSource("Secret", "s", "k")
    env: Mapping[str, Text] = {"A": "plain", "B": secret}
    files: Mapping[str, Text] = {"dir/file": secret}
    await runner.start(attempt, CommandWork(["sh", "-c", "pwd; echo $A $B; cat dir/file; env | sort"], env, files))
    ending = await machine.ended(runner, attempt)
    stdout = ending.outputs["stdout"]
    assert isinstance(stdout, Inline)
    work, values, *variables = str(stdout.value).splitlines()
    assert work == str(machine.place(attempt).work)
    assert values == "plain hush"
    names = {line.split("=")[0].removeprefix("hush") for line in variables}
    assert names <= {"A", "B", "HOME", "LANG", "PATH", "PILOTHOUSE_OUTPUT", "PWD", "SHLVL", "OLDPWD", "_"}
    assert ending.state is AttemptState.SUCCEEDED
    await runner.forget(attempt)
    assert not machine.place(attempt).path.exists()


async def test_a_command_that_forges_frames_ends_as_its_own_frame_says(machine: Machine) -> None:
    runner, attempt = machine.runner(), new_attempt()
    forged = '{"out": "\\ud800"}'
    await runner.start(attempt, CommandWork(["sh", "-c", f"echo '{forged}' >> ../log"]))
    ending = await machine.ended(runner, attempt)
    assert ending.state is AttemptState.SUCCEEDED
    assert ending.outputs["stdout"] == Inline("\ufffd")


async def test_however_many_runners_start_it_a_command_begins_once(machine: Machine) -> None:
    attempt, runners = new_attempt(), [machine.runner() for _ in range(4)]
    await asyncio.gather(*(runner.start(attempt, machine.slow()) for runner in runners))
    await machine.begun(attempt)
    (machine.folder / "go").touch()
    endings = [await machine.ended(runner, attempt) for runner in runners]
    assert {ending.state for ending in endings} == {AttemptState.SUCCEEDED}
    assert machine.effects == "x\n"


async def test_a_command_outlives_its_runner_and_the_next_one_adopts_it(machine: Machine) -> None:
    attempt = new_attempt()
    first = machine.runner()
    await first.start(attempt, machine.slow())
    await machine.begun(attempt)
    await first.close()
    machine.runners.clear()
    del first
    gc.collect()
    second = machine.runner()
    assert await second.running(attempt)
    assert await second.ending(attempt) is None
    (machine.folder / "go").touch()
    assert (await machine.ended(second, attempt)).outputs["stdout"] == Inline("over")
    assert machine.effects == "x\n"


@pytest.mark.feature("B44")
async def test_a_command_whose_entry_point_was_killed_is_lost(machine: Machine) -> None:
    runner, attempt = machine.runner(), new_attempt()
    await runner.start(attempt, machine.slow())
    await machine.begun(attempt)
    os.kill(machine.place(attempt).read().pid, signal.SIGKILL)
    assert (await machine.ended(runner, attempt)).state is AttemptState.LOST


async def test_a_command_that_begins_while_it_is_looked_at_is_not_lost(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever looks for the lock first and for the log after that takes a beginning command for a dead one."""
    runner, attempt = machine.runner(), new_attempt()
    place, look = machine.place(attempt), Place.locked
    place.prepare(machine.slow().argv, {}, None, False)

    def locked(self: Place) -> bool:
        found = look(self)
        if not self.begun():
            os.posix_spawn(place.command[0], list(place.command), {"PATH": os.environ["PATH"]}, setsid=True)
            while not self.begun():
                time.sleep(0.01)
        return found

    monkeypatch.setattr(Place, "locked", locked)
    for _ in range(2):
        assert await runner.ending(attempt) is None
        assert not place.begun() or look(place)
        place.locked()


async def test_what_never_began_is_proved_so_that_nothing_can_begin_later(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, attempt = machine.runner(), new_attempt()
    real = places.ENTRYPOINT
    monkeypatch.setattr(places, "ENTRYPOINT", ("/bin/false",))
    await runner.start(attempt, machine.slow())
    ending = await machine.ended(runner, attempt)
    assert ending.state is AttemptState.NEVER_STARTED
    assert ending.failure == Failure(FailureCode.ENV, "the command's entry point ended before it began")
    monkeypatch.setattr(places, "ENTRYPOINT", real)
    late = await asyncio.create_subprocess_exec(*machine.place(attempt).command)
    assert await late.wait() == TAKEN
    assert machine.effects == ""
    assert (await machine.ended(machine.runner(), attempt)).state is AttemptState.NEVER_STARTED


@pytest.mark.parametrize(
    ("failure", "state"), [(None, AttemptState.CANCELLED), (TOO_LATE, AttemptState.FAILED)], ids=["cancel", "fail"]
)
async def test_a_command_is_stopped_before_and_after_it_began(
    machine: Machine, failure: Failure | None, state: AttemptState
) -> None:
    runner, early, late = machine.runner(), new_attempt(), new_attempt()
    await runner.stop(early, failure)
    await runner.start(early, machine.slow())
    ending = await machine.ended(runner, early)
    assert (ending.state, ending.failure, machine.effects) == (state, failure, "")
    await runner.start(late, machine.slow())
    await machine.begun(late)
    await machine.runner().stop(late, failure)
    ending = await machine.ended(runner, late)
    assert (ending.state, ending.failure, machine.effects) == (state, failure, "x\n")


async def test_waiting_for_a_stopped_command_wakes_nobody_until_it_has_ended(machine: Machine) -> None:
    runner, attempt = machine.runner(), new_attempt()
    await runner.start(attempt, machine.work("trap : TERM; echo x >> effects; until test -e go; do sleep 0.02; done"))
    await machine.begun(attempt)
    for _ in range(3):
        await runner.stop(attempt, None)
    assert machine.wakes == 0
    (machine.folder / "go").touch()
    assert (await machine.ended(runner, attempt)).state is AttemptState.CANCELLED


@pytest.mark.parametrize(
    ("work", "code", "says"),
    [
        (CommandWork(["ls"], image="alpine"), FailureCode.ENV, "image `alpine` runs on a cluster only"),
        (CommandWork(["ls"], {"A": ValueSource("Secret", "gone", "k")}), FailureCode.ENV, "no Secret `gone`"),
        (CommandWork(["ls"], {"A": "x\0y"}), FailureCode.INP, "env `A` holds a NUL"),
        (CommandWork(["ls"], {"A": "\ud800"}), FailureCode.INP, "env `A` holds a NUL or a lone surrogate"),
        (CommandWork(["ls"], {"A": "x" * 200_000}), FailureCode.ENV, "cannot be started: Argument list too long"),
        (CommandWork(["ls"], files={"../out": "x"}), FailureCode.INP, "file `../out` lies outside"),
        (CommandWork(["ls"], files={"/etc/out": "x"}), FailureCode.INP, "file `/etc/out` lies outside"),
        (CommandWork(["ls"], files={"a/../../out": "x"}), FailureCode.INP, "lies outside"),
        (CommandWork(["ls"], files={".": "x"}), FailureCode.INP, "lies outside"),
        (CommandWork(["ls"], files={"a": "x", "a/b": "x"}), FailureCode.INP, "file `a/b` cannot be written: "),
        (CommandWork(["ls"], files={"x" * 300: "x"}), FailureCode.INP, "cannot be written: File name too long"),
        (CommandWork(["ls"], files={"a\0b": "x"}), FailureCode.INP, "cannot be written: embedded null byte"),
    ],
)
async def test_work_that_cannot_be_started_says_why(
    machine: Machine, work: CommandWork, code: FailureCode, says: str
) -> None:
    runner, attempt = machine.runner(), new_attempt()
    with pytest.raises(Failed) as failed:
        await runner.start(attempt, work)
    assert failed.value.failure.code is code
    assert says in failed.value.failure.message
    await runner.stop(attempt, failed.value.failure)
    assert (await machine.ended(runner, attempt)).failure == failed.value.failure
    assert [path.name for path in machine.folder.rglob("out")] == []


def test_a_place_is_for_its_owner_alone(tmp_path: Path) -> None:
    place = Place(tmp_path / "place")
    place.prepare(["true"], {"secret": "x"}, None, False)
    assert place.path.stat().st_mode & 0o077 == 0
