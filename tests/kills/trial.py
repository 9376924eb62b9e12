"""A trial: the counted workflow, killed at some writes, then resumed; and what came of it."""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKFLOW = Path(__file__).with_name("workflow.yaml")
EFFECTS = ("command", "shell", "again", "code", "flaky")


@dataclass(frozen=True)
class Kill:
    """Before or after the `number`th write of the process."""

    number: int
    moment: str

    def __str__(self) -> str:
        return f"{self.moment} write {self.number}"


@dataclass(frozen=True)
class Outcome:
    """How a trial ended: the run as data, and how often each side effect happened."""

    kills: Sequence[Kill]
    struck: int
    run: dict[str, Any]
    effects: Counter[str]

    @property
    def unknown(self) -> list[str]:
        """The steps that say that their outcome is unknown."""
        steps = self.run["steps"]
        return [step["path"] for step in steps if step.get("failure", {}).get("reason") == "OutcomeUnknown"]

    def problem(self) -> str:
        """What is wrong with the end; empty if all is right."""
        state = self.run["run"]["state"]
        if any(count > 1 for count in self.effects.values()):
            return f"repeated: {dict(self.effects)}"
        if state == "Succeeded":
            lost = [name for name in EFFECTS if self.effects[name] != 1]
            right = self.run["outputs"] == [{"name": "sum", "value": [1, True]}]
            return f"lost: {lost}" if lost else "" if right else f"wrong outputs: {self.run['outputs']}"
        return "" if state == "Failed" and self.unknown else f"ended {state}: {self.run.get('failure')}"


async def trial(folder: Path, dsn: str, kills: Sequence[Kill]) -> Outcome:
    """Runs to the first kill, resumes to each next one, then to the end."""
    file, counters = _lay_out(folder)
    struck = 0
    for kill in kills:
        status, _, _ = await _process(file, folder / "state", dsn, kill)
        struck += status == -9
    _, out, err = await _process(file, folder / "state", dsn, None)
    if not out:  # a kill in the last write left a run that has ended
        _, out, err = await _pilothouse("get", "counted", "-o", "json", "--state", str(folder / "state"), "--dsn", dsn)
    try:
        run = json.loads(out)
    except ValueError:
        raise AssertionError(f"{[*map(str, kills)]}: no result; it said: {err}") from None
    return Outcome(kills, struck, run, _count(counters))


async def points(folder: Path, dsn: str) -> list[str]:
    """The names of the writes of one run that is not killed."""
    file, _ = _lay_out(folder)
    _, _, err = await _process(file, folder / "state", dsn, None)
    line = next(line for line in err.splitlines() if line.startswith("points "))
    names: list[str] = json.loads(line.removeprefix("points "))
    return names


def _lay_out(folder: Path) -> tuple[Path, Path]:
    counters = folder / "counters"
    counters.mkdir(parents=True)
    file = folder / "workflow.yaml"
    file.write_text(WORKFLOW.read_text().replace("COUNTERS", str(counters)))
    return file, counters


def _count(counters: Path) -> Counter[str]:
    return Counter({path.name: path.read_text().count("counted") for path in counters.iterdir()})


async def _process(file: Path, state: Path, dsn: str, kill: Kill | None) -> tuple[int, str, str]:
    where = (str(file), str(state), dsn, str(kill.number if kill else 0), kill.moment if kill else "after")
    return await _run("-m", "tests.kills.killed", *where)


async def _pilothouse(*arguments: str) -> tuple[int, str, str]:
    return await _run("-c", "from pilothouse.cli.main import main; main()", *arguments)


async def _run(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()
