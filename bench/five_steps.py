"""A run of five steps from its creation to its end, against the bare cost of the processes that it starts.

Two commands, a conditional, a transform and a piece of code, each waiting for the one before. By hand, the same three
programs are started one after the other, each as soon as the one before has ended, and their output is read.
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.ground import PlainInserts, run_of, server
from bench.measure import Ratio, Report, Series, print_report, timed
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.cli.sources import LocalSources
from pilothouse.records.values import Inline
from pilothouse.store.ports import RunStore
from pilothouse.store.postgres import open_store
from pilothouse.workflows.closure import Closure
from pilothouse.workflows.executor import Executor
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.local.commands import LocalCommands
from pilothouse.workflows.local.runner import Runner

RUNS = 20

COUNT: Sequence[str] = ("sh", "-c", "printf 42")
SHOW: Sequence[str] = ("sh", "-c", 'printf "%s" "$1"', "sh")
CODE = 'import sys\nprint(int(sys.argv[1]) * 2, end="")\n'


async def measure() -> Report:
    runs: list[float] = []
    by_hand: list[float] = []
    with tempfile.TemporaryDirectory(prefix="pilothouse-bench-") as folder:
        async with server() as dsn, open_store(dsn) as store, Evaluator() as evaluator, PlainInserts.into(dsn) as plain:
            runner = Runner(store, evaluator, _executors(Path(folder), store), print)
            for _ in range(RUNS):
                by_hand.append(await timed(_by_hand(Path(folder))))
                runs.append(await timed(_run(store, runner)))
                await plain.one()
    return _report(Series("five steps, end to end", runs), Series("their processes by hand", by_hand), plain.seconds)


def _report(ours: Series, bare: Series, inserts: Sequence[float]) -> Report:
    insert = Series("one insert and commit", inserts)
    share = "what the engine adds, a step, p50"
    added = (ours.p50 - bare.p50) / 5
    return Report(
        f"Five steps: {RUNS} runs of two commands, a conditional, a transform and a piece of code",
        (insert, bare, ours),
        (
            Ratio("five steps, p50", "their processes by hand, p50", ours.p50, bare.p50),
            Ratio(share, "one insert and commit, p50", added, insert.p50),
        ),
    )


async def _run(store: RunStore, runner: Runner) -> None:
    run = await runner.drive((await store.create_run(run_of(_spec()))).ref)
    assert run.outputs == {"shown": Inline("84")}, f"the run went wrong: {run.failure}"


async def _by_hand(folder: Path) -> None:
    code = folder / "main.py"
    code.write_text(CODE)
    counted = await _output(*COUNT)
    doubled = await _output("python3", str(code), counted)
    assert await _output(*SHOW, doubled) == "84"


async def _output(*argv: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.decode()


def _spec() -> WorkflowSpec:
    steps: list[dict[str, Any]] = [
        {"name": "count", "runCommand": {"command": list(COUNT)}},
        {"name": "enough", "conditional": {"if": "int(steps.count.outputs.stdout) > 40", "then": ["number"]}},
        {"name": "number", "transform": {"value": "${{ int(steps.count.outputs.stdout) }}"}},
        {
            "name": "double",
            "executeCode": {"language": "python", "code": CODE, "args": ["${{ steps.number.outputs.value }}"]},
        },
        {"name": "show", "runCommand": {"command": list(SHOW), "args": ["${{ steps.double.outputs.stdout }}"]}},
    ]
    shown = {"name": "shown", "value": "${{ steps.show.outputs.stdout }}"}
    return WorkflowSpec.model_validate({"steps": steps, "outputs": [shown]})


def _executors(folder: Path, store: RunStore) -> Callable[[Closure, Callable[[], None]], Mapping[str, Executor]]:
    def executors(closure: Closure, wake: Callable[[], None]) -> Mapping[str, Executor]:
        commands = LocalCommands(folder / "attempts", store, LocalSources(closure.config_maps, {}), wake)
        return {"runCommand": commands, "executeCode": commands}

    return executors


if __name__ == "__main__":
    print_report(asyncio.run(measure()))
