"""The result of a run, printed when it has ended."""

import json
from textwrap import indent

from pilothouse.cli.names import name_of
from pilothouse.cli.printing import duration, print_data, print_text
from pilothouse.cli.reading import RunReader
from pilothouse.cli.view import output_values, run_view
from pilothouse.records.runs import Run, RunRef


async def print_result(store: RunReader, ref: RunRef, output: str) -> None:
    """The run's state, failure and outputs."""
    snapshot = await store.snapshot(ref)
    if output != "text":
        print_data(await run_view(store, snapshot), output)
        return
    run = snapshot.run
    took = duration((run.finished_at or snapshot.now) - run.created_at)
    print_text(f"{name_of(run)} {run.state.value} in {took}")
    if run.failure is not None:
        print_text(f"{run.failure}")
    await print_outputs(store, run)


async def print_outputs(store: RunReader, run: Run) -> None:
    """Each output under its name: a text as it is, anything else as JSON."""
    if run.outputs:
        print_text("\nOutputs:")
    for name, value in (await output_values(store, run)).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        print_text(f"  {name}:\n{indent(text, '    ')}" if "\n" in text else f"  {name}: {text}")
