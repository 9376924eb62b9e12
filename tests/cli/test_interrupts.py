"""Runs that are interrupted in every way go on where they stood, and nothing is done twice."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.cli.command import Cli, processes_of

SPEC = """\
  steps:
    - name: before
      runCommand: {command: [sh, -c, 'echo before >> FOLDER/effects']}
    - name: slow
      needs: [before]
      runCommand: {command: [sh, -c, 'cd FOLDER; echo slow >> effects; until test -e go; do sleep 0.05; done']}
    - name: after
      needs: [slow]
      runCommand: {command: [sh, -c, 'echo after >> FOLDER/effects; echo done']}
  outputs: [{name: said, value: "${{ steps.after.outputs.stdout }}"}]
"""
"""`slow` runs until the file `go` is there. Each effect leaves a line."""

AGENT = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: worker}
spec:
  model:
    provider: Scripted
    script:
      - toolCalls: [{name: shell, arguments: {command: echo first >> FOLDER/effects}}]
      - toolCalls: [{name: shell, arguments: {command: 'echo slow >> FOLDER/effects; sleep 60'}}]
      - text: all done
  tools: [{builtin: shell}]
---
apiVersion: pilothouse.dev/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  steps: [{name: work, invokeAgent: {agentRef: {name: worker}, message: Go.}}]
  outputs: [{name: said, value: "${{ steps.work.outputs.text }}"}]
"""


def effects(folder: Path) -> list[str]:
    path = folder / "effects"
    return path.read_text().split() if path.exists() else []


async def effect(folder: Path, name: str) -> None:
    """Waits until the effect has happened."""
    while name not in effects(folder):  # noqa: ASYNC110 - a file tells nobody that it grew
        await asyncio.sleep(0.02)


def slow(cli: Cli) -> str:
    return cli.workflow(SPEC.replace("FOLDER", str(cli.folder)))


async def gone(folder: Path) -> None:
    """Waits until no process of the test lives."""
    while processes_of(folder):  # noqa: ASYNC110 - a process that is not ours tells nobody of its end
        await asyncio.sleep(0.02)


@pytest.mark.feature("B44")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_run_is_resumed_while_its_command_goes_on(cli: Cli, number: signal.Signals) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        run.signal(number)
        paused = await run.end()
    assert paused.status == 130
    assert paused.err.endswith("w/1 is paused; go on with: pilothouse resume w/1\n")
    (cli.folder / "go").touch()
    resumed = await cli("resume")
    assert resumed.status == 0, resumed.err
    assert "said: done" in resumed.out
    assert effects(cli.folder) == ["before", "slow", "after"]
    assert "RunStarted" not in resumed.err, "only what is new is shown"
    assert [line.split()[1:] for line in resumed.err.splitlines()] == [
        ["slow", "StepSucceeded"],
        ["after", "StepStarted"],
        ["after", "StepSucceeded"],
        ["-", "RunSucceeded"],
    ]
    await gone(cli.folder)
    assert list((cli.folder / "state/attempts").iterdir()) == []


@pytest.mark.feature("B44")
async def test_a_killed_runner_leaves_a_command_that_resume_adopts(cli: Cli) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        run.signal(signal.SIGKILL)
        assert (await run.end()).status == -9
    async with cli.begun("resume", "w/1", "-o", "json") as resumed, cli.begun("events", "-f", "w") as events:
        await events.until_out("slow              StepStarted")
        (cli.folder / "go").touch()
        result = await resumed.end()
        told = await events.end()
    assert result.status == 0, result.err
    assert result.data["outputs"] == [{"name": "said", "value": "done"}]
    assert [step["attempts"] for step in result.data["steps"]] == [1, 1, 1]
    assert effects(cli.folder) == ["before", "slow", "after"]
    assert told.status == 0
    assert told.out.rstrip().endswith("RunSucceeded")


@pytest.mark.feature("B44")
async def test_a_command_that_was_killed_with_its_runner_ends_in_an_unknown_outcome(cli: Cli) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        run.signal(signal.SIGKILL)
        await run.end()
    for pid in processes_of(cli.folder / "state/attempts"):
        os.kill(pid, signal.SIGKILL)
    resumed = await cli("resume", "-o", "json")
    assert resumed.status == 1
    step = next(step for step in resumed.data["steps"] if step["path"] == "slow")
    assert (step["state"], step["failure"]["reason"]) == ("Error", "OutcomeUnknown")
    assert effects(cli.folder) == ["before", "slow"]


@pytest.mark.feature("B44")
async def test_an_interrupted_agent_goes_on_without_repeating_what_it_did(cli: Cli) -> None:
    file = cli.file(AGENT.replace("FOLDER", str(cli.folder)))
    async with cli.begun("run", "-f", file) as run:
        await effect(cli.folder, "slow")
        run.signal(signal.SIGINT)
        paused = await run.end()
    assert paused.status == 130, paused.err
    await gone(cli.folder)
    resumed = await cli("resume", "-o", "json")
    assert resumed.status == 0, resumed.err
    assert resumed.data["outputs"] == [{"name": "said", "value": "all done"}]
    assert effects(cli.folder) == ["first", "slow"]
    attempts = (await cli("describe", "w")).out.split("Attempts:")[1].splitlines()[2:4]
    states = [[line.split()[1], line.split()[2]] for line in attempts]
    assert states == [["1", "Released"], ["1", "Succeeded"]], "a pause uses up neither a try nor a restart"
    assert not list((cli.folder / "state/workspaces").iterdir())


async def test_a_run_that_another_process_drives_is_refused_at_once(cli: Cli) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        second = await cli("resume")
        assert second.status == 2
        assert second.err.splitlines()[-1] == (
            "pilothouse: w/1 is driven by another process; "
            "watch it with `pilothouse events -f w/1`, or end it with `pilothouse cancel w/1`"
        )
        (cli.folder / "go").touch()
        assert (await run.end()).status == 0


@pytest.mark.parametrize("how", ["run", "killed"])
async def test_cancel_ends_a_run_with_and_without_a_runner(cli: Cli, how: str) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        if how == "killed":
            run.signal(signal.SIGKILL)
            await run.end()
        cancelled = await cli("cancel", "w")
        assert (cancelled.status, cancelled.err) == (0, "w/1 Cancelled\n")
        if how == "run":
            assert (await run.end()).status == 3
    steps = (await cli("get", "w", "-o", "json")).data["steps"]
    assert [step["state"] for step in steps] == ["Succeeded", "Cancelled", "Cancelled"]
    await gone(cli.folder)
    assert list((cli.folder / "state/attempts").iterdir()) == []


async def test_cancel_takes_over_from_a_runner_that_dies_meanwhile(cli: Cli) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        run.signal(signal.SIGSTOP)  # it drives the run and does nothing
        async with cli.begun("cancel", "w") as cancelling, cli.begun("events", "-f", "w") as events:
            await events.until_out("ShutdownRequested")
            run.signal(signal.SIGKILL)
            assert (await cancelling.end()).status == 0
            assert (await events.end()).out.rstrip().endswith("RunCancelled")


async def test_ended_runs_are_neither_resumed_nor_cancelled(cli: Cli) -> None:
    await cli("run", "-f", cli.workflow("  steps: [{name: a, transform: {value: 1}}]"))
    refused = await cli("cancel", "w")
    assert (refused.status, refused.err) == (2, "pilothouse: w/1 has ended already: it Succeeded\n")
    assert (await cli("resume")).err == "pilothouse: no run in namespace default waits to be resumed\n"


async def test_a_run_is_resumed_only_in_the_folder_it_was_begun_in(cli: Cli) -> None:
    async with cli.begun("run", "-f", slow(cli)) as run:
        await effect(cli.folder, "slow")
        run.signal(signal.SIGKILL)
        await run.end()
    for command in ("resume", "cancel"):
        refused = await cli(command, "w", "--state", str(cli.folder / "elsewhere"))
        assert refused.status == 2
        assert f"w/1 was not begun in {cli.folder / 'elsewhere'}" in refused.err
        assert "name the folder it was begun in with --state" in refused.err
    (cli.folder / "go").touch()
    assert (await cli("resume")).status == 0
    assert effects(cli.folder) == ["before", "slow", "after"]


async def test_a_run_whose_secrets_cannot_be_read_again_waits_for_them(cli: Cli) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\nstringData: {token: hush}\n---\n"
    env = "[{name: TOKEN, valueFrom: {secretKeyRef: {name: keys, key: token}}}]"
    steps = SPEC.replace(
        "runCommand: {command: [sh, -c, 'echo after", f"runCommand: {{env: {env}, command: [sh, -c, 'echo after"
    )
    workflow = cli.workflow(steps.replace("FOLDER", str(cli.folder)))
    file = cli.file(secret + cli.text(workflow))
    async with cli.begun("run", "-f", file) as run:
        await effect(cli.folder, "slow")
        run.signal(signal.SIGINT)
        await run.end()
    moved = cli.file(cli.text(file), "moved.yaml")
    cli.file("", "workflow.yaml")
    (cli.folder / "go").touch()
    refused = await cli("resume")
    assert refused.status == 2
    assert "w/1 cannot go on" in refused.err
    assert "give the files that hold its Secrets with -f" in refused.err
    assert (await cli("get", "w", "-o", "json")).data["run"]["state"] == "Running"
    assert (await cli("resume", "-f", moved)).status == 0
    assert effects(cli.folder) == ["before", "slow", "after"]


async def test_an_agent_that_reaches_its_timeout_ends_at_it(cli: Cli) -> None:
    text = AGENT.replace("steps: [{name: work,", "steps: [{name: work, timeout: 1500ms,")
    ended = await cli("run", "-f", cli.file(text.replace("FOLDER", str(cli.folder))), "-o", "json")
    assert ended.status == 1
    [step] = ended.data["steps"]
    assert (step["state"], step["failure"]["code"]) == ("Failed", "F-TMO")
    assert effects(cli.folder) == ["first", "slow"]
    await gone(cli.folder)
