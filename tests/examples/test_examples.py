"""Every example runs as it is, with the results that its text promises; the README shows what is really there."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Cli
from tests.cli.test_help import COMMANDS
from tests.store.fixtures import database, server_dsn

__all__ = ["database", "server_dsn"]

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

NOTES = "Steady as she goes\n\nTwo changes make runs easier to trust."

RUNS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("greet.yaml", {}, {"text": "Good day, world."}),
    ("greet.yaml", {"who": "Ann"}, {"text": "Hi Ann!"}),
    ("greet.yaml", {"who": '"$(id)"'}, {"text": 'Good day, "$(id)".'}),
    ("release-notes.yaml", {}, {"title": "Steady as she goes", "changes": 2, "text": NOTES}),
    (
        "release-notes.yaml",
        {"since": "v9.9.9"},
        {"title": "Nothing new", "changes": 0, "text": "Nothing new\n\nNo changes."},
    ),
    ("press-release.yaml", {}, {"text": "Answers now take 38 ms.", "tokens": 1060}),
]


@pytest.fixture
def cli(tmp_path: Path, database: str) -> Cli:
    return Cli(ROOT, ("--state", str(tmp_path / "state"), "--dsn", database))


@pytest.mark.feature("B44")
@pytest.mark.parametrize(("file", "params", "outputs"), RUNS)
async def test_an_example_gives_what_it_promises(
    cli: Cli, file: str, params: dict[str, str], outputs: dict[str, Any]
) -> None:
    given = [f"--param={name}={value}" for name, value in params.items()]
    result = await cli("run", "-f", f"examples/{file}", "-o", "json", *given)
    assert result.status == 0, result.err
    assert {output["name"]: output["value"] for output in result.data["outputs"]} == outputs


@pytest.mark.feature("B33")
async def test_an_agent_step_runs_the_agent_s_own_loop_with_its_tools(cli: Cli) -> None:
    result = await cli("run", "-f", "examples/release-notes.yaml", "-o", "json")
    [step] = [step for step in result.data["steps"] if step["kind"] == "invokeAgent"]
    assert (step["state"], step["attempts"]) == ("Succeeded", 1)
    told = (await cli("logs", "release-notes", "write")).out.splitlines()
    calls = [line.partition("(")[0] for line in told if line.startswith("assistant: ") and line.endswith(")")]
    assert calls == ["assistant: file_write", "assistant: shell", "assistant: file_read"]
    assert "toolResult: 2" in told, "what the shell counted in the file that was written"
    assert '    "Steps declare when they may be tried again",' in "\n".join(told), "the arguments reach the model"


@pytest.mark.feature("B85")
async def test_agents_that_are_asked_read_what_their_caller_wrote_and_their_work_is_in_the_step_s_log(cli: Cli) -> None:
    result = await cli("run", "-f", "examples/press-release.yaml", "-o", "json")
    assert result.status == 0, result.err
    told = (await cli("logs", "press-release", "write")).out.splitlines()
    assert "toolResult: Answers now take 40 ms." in told, "the checker reads the draft of the editor"
    assert "toolResult: The draft says 40 ms; the benchmark says 38 ms." in told
    assert 'toolResult: {"fit": true, "why": "Short, and it says what is new."}' in told
    assert '"readers": "engineers"' in "\n".join(told), "the arguments reach the critic"


def test_every_example_is_run() -> None:
    assert {path.name for path in (ROOT / "examples").glob("*.yaml")} == {file for file, _, _ in RUNS}


def commands(text: str) -> list[list[str]]:
    """The `pilothouse run` lines of a text, as words."""
    lines = re.findall(r"^(?:#\s+)?(pilothouse run .*?)(?:\s+#.*)?$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


def test_the_commands_that_texts_show_are_those_that_are_tested() -> None:
    texts = [README, *(path.read_text() for path in sorted((ROOT / "examples").glob("*.yaml")))]
    shown = {tuple(words[2:]) for text in texts for words in commands(text)}
    tested = {
        ("-f", f"examples/{file}", *(word for name, value in params.items() for word in ("--param", f"{name}={value}")))
        for file, params, _ in RUNS
    }
    assert shown
    assert shown <= tested


def test_the_readme_shows_the_greeting_as_it_is() -> None:
    block = re.search(r"```yaml\n(.*?)```", README, re.DOTALL)
    assert block is not None
    example = (ROOT / "examples/greet.yaml").read_text()
    assert block[1] == re.sub(r"^#.*\n", "", example, flags=re.MULTILINE)


def test_the_readme_names_every_command_and_target() -> None:
    table = README.split("## The command line")[1].split("## ")[0]
    assert [name for name in COMMANDS if not re.search(rf"`(?:pilothouse )?{name}\b", table)] == []
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"`?make ([\w-]+)", README))
    assert {target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()
    assert re.search(r"^run:.*\n\t.* examples/release-notes.yaml$", makefile, re.MULTILINE)
