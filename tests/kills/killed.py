"""Runs or resumes the counted workflow in this process, and ends it with SIGKILL at one write of its store.

    python -m tests.kills.killed FILE STATE DSN NUMBER before|after

NUMBER 0 kills nothing and prints the points that were passed. A run that was begun is resumed, unless it has ended.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from pilothouse.cli import run as command
from pilothouse.cli.where import Where
from pilothouse.records.runs import Run
from pilothouse.store.faults import Hook, KillAt, Record, faulty
from pilothouse.store.ports import RunStore


@dataclass(frozen=True)
class FaultyWhere(Where):
    """A place whose store has fault points."""

    hook: Hook

    @asynccontextmanager
    async def store(self) -> AsyncIterator[RunStore]:
        async with Where.store(self) as store:
            yield faulty(store, self.hook)


async def _begun(where: Where) -> Run | None:
    async with where.store() as store:
        return next(iter(await store.runs()), None)


def main(file: str, state: str, dsn: str, number: str, moment: str) -> int:
    hook: Hook = Record() if number == "0" else KillAt(int(number), cast(Literal["before", "after"], moment))
    where = FaultyWhere(Path(state), dsn, hook)
    begun = asyncio.run(_begun(Where(Path(state), dsn)))
    if begun is None:
        status = command.start(where, command.Request((Path(file),), (), None, "default"), "json")
    elif begun.state.final:
        status = 0
    else:
        status = command.resume(where, None, (), "default", "json")
    if isinstance(hook, Record):
        sys.stderr.write("points " + json.dumps([point.name for point in hook.points]) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
