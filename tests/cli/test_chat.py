"""`pilothouse chat`: a conversation that no end of a process ends."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.cli.command import Cli

MATE = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: mate}
spec:
  model:
    provider: Scripted
    script:
      - text: Aye. What course?
      - {toolCalls: [{name: shell, arguments: {command: 'echo set >> FOLDER/effects; echo due north'}}]}
      - text: North it is.
      - {toolCalls: [{name: shell, arguments: {command: 'touch FOLDER/begun; sleep 60'}}]}
      - text: "Still here. \\x1b[2J"
  tools: [{builtin: shell}]
"""


@pytest.fixture
def file(cli: Cli) -> str:
    return cli.file(MATE.replace("FOLDER", str(cli.folder)))


async def begun(folder: Path) -> None:
    while not (folder / "begun").exists():  # noqa: ASYNC110 - a file tells nobody that it is there
        await asyncio.sleep(0.02)


async def test_text_calls_and_results_are_shown_as_they_come(cli: Cli, file: str) -> None:
    result = await cli("chat", "mate", "-f", file, "--session", "watch", stdin="Hello.\nGo north.\n")
    assert result.status == 0, result.err
    shell = f'> shell {{"command": "echo set >> {cli.folder}/effects; echo due north"}}'
    lines = result.out.splitlines()
    assert lines[0] == "Aye. What course?"
    assert lines[1][:40] == shell[:40]
    assert lines[2:] == ["< shell: due north [exit code 0]", "North it is."]
    assert result.err.splitlines()[-1] == "the conversation is kept; go on with --session watch"


async def test_a_conversation_goes_on_in_another_process_and_its_runs_are_on_record(cli: Cli, file: str) -> None:
    for said, answer in (("Hello.", "Aye. What course?"), ("Go north.", "North it is.")):
        result = await cli("chat", "mate", "-f", file, "--session", "watch", stdin=f"{said}\n")
        assert (result.status, result.out.splitlines()[-1]) == (0, answer), result.err
    listed = await cli("get")
    assert [line.split()[:2] for line in listed.out.splitlines()[1:]] == [
        ["chat-mate/2", "Succeeded"],
        ["chat-mate/1", "Succeeded"],
    ]
    assert (cli.folder / "effects").read_text() == "set\n"


async def test_the_tree_is_shown_and_another_branch_is_taken(cli: Cli, file: str) -> None:
    said = "Hello.\nGo north.\n/branch 2\nGo south.\n/tree\n/branch 99\n/bridge\n/quit\nnever\n"
    result = await cli("chat", "mate", "-f", file, stdin=said)
    assert result.status == 0, result.err
    assert result.out.splitlines()[-12:] == [
        "|   1 user: Hello.",
        "|   2 assistant: Aye. What course?",
        "    3 user: Go north.",
        "    4 assistant: > shell",
        "    5 toolResult: shell due north [exit code 0]",
        "    6 assistant: North it is.",
        "|   7 user: Go south. (below 2)",
        "|   8 assistant: > shell",
        "|   9 toolResult: shell due north [exit code 0]",
        "*  10 assistant: North it is.",
        "! /branch takes a number from 1 to 10; /tree shows them",
        "! there is no /bridge; /help lists what there is",
    ]


async def test_ctrl_c_aborts_the_answer_and_keeps_the_conversation_and_ends_it_at_rest(cli: Cli, file: str) -> None:
    async with cli.begun("chat", "mate", "-f", file) as chat:
        for line in ("Hello.", "Go north.", "Now wait."):
            await chat.say(line)
        await begun(cli.folder)
        chat.signal(signal.SIGINT)
        await chat.until_out("! aborted")
        await chat.say("Are you there?")
        told = await chat.until_out("Still here.")
        await chat.say("/help")
        await chat.until_out("Every other line goes to the agent.")
        chat.signal(signal.SIGINT)
        result = await chat.end()
    assert (result.status, "go on with --session chat-" in result.err) == (0, True), result.err
    assert "\\x1b[2J" in told, "a model cannot command the terminal"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_a_conversation_whose_process_died_goes_on_where_it_stood(
    cli: Cli, file: str, number: signal.Signals
) -> None:
    async with cli.begun("chat", "mate", "-f", file, "--session", "watch") as chat:
        for line in ("Hello.", "Go north."):
            await chat.say(line)
        await chat.until_out("North it is.")
        chat.signal(number)
        await chat.end()
    result = await cli("chat", "mate", "-f", file, "--session", "watch", stdin="/tree\n")
    assert result.status == 0, result.err
    assert [line[6:].split(":")[0] for line in result.out.splitlines()] == [
        *("user", "assistant", "user", "assistant", "toolResult", "assistant")
    ]
    assert (cli.folder / "effects").read_text() == "set\n"
    assert len((await cli("get")).out.splitlines()) == 2, "it is the same run"


async def test_a_session_has_one_conversation_at_a_time(cli: Cli, file: str) -> None:
    async with cli.begun("chat", "mate", "-f", file, "--session", "watch") as chat:
        await chat.say("Hello.")
        await chat.until_out("Aye.")
        result = await cli("chat", "mate", "-f", file, "--session", "watch", stdin="Hi.\n")
    assert (result.status, result.out) == (2, "")
    assert "another process has the session watch, in chat-mate/1" in result.err


async def test_an_agent_that_is_not_in_the_files_is_named_beside_those_that_are(cli: Cli, file: str) -> None:
    result = await cli("chat", "mat", "-f", file)
    assert (result.status, result.out) == (2, "")
    assert "hold no Agent `mat` of namespace default; they hold: mate" in result.err


async def test_the_agent_may_ask_another_one_of_the_files(cli: Cli) -> None:
    mate = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: mate}
spec:
  model:
    provider: Scripted
    script: [{toolCalls: [{name: cook, arguments: {message: What is there?}}]}, {text: Soup.}]
  tools: [{agentRef: {name: cook}}]
---
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: cook}
spec: {model: {provider: Scripted, script: [{text: There is soup.}]}}
"""
    result = await cli("chat", "mate", "-f", cli.file(mate), stdin="I am hungry.\n")
    assert (result.status, result.out.splitlines()[1:]) == (0, ["< cook: There is soup.", "Soup."]), result.err
