"""The origin of a run: the files it came from, kept in the state folder beside the processes that it starts.

It also tells whose run it is: only this folder holds the places of its commands, so nobody else may drive it.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pilothouse.cli.command import CommandError
from pilothouse.cli.driver import Secrets, secrets_of
from pilothouse.cli.manifests import read
from pilothouse.cli.names import name_of
from pilothouse.cli.where import Where
from pilothouse.records.runs import Run
from pilothouse.workflows.closure import Closure

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Origin:
    """The absolute paths of the files, `-` for standard input."""

    files: Sequence[str]

    @classmethod
    def of(cls, files: Sequence[Path]) -> "Origin":
        return cls([str(path) if str(path) == STDIN else str(path.absolute()) for path in files])

    @classmethod
    def find(cls, where: Where, run: Run) -> "Origin":
        """The origin of a run that was begun here. Raises CommandError for one that was not."""
        try:
            return cls(json.loads(_path(where, run.ref.run).read_bytes())["files"])
        except FileNotFoundError:
            text = f"{name_of(run)} was not begun in {where.state}, and its processes are not known here"
            raise CommandError(f"{text}; name the folder it was begun in with --state") from None

    def keep(self, where: Where, run: UUID) -> None:
        path = _path(where, run)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"files": list(self.files)}))

    async def secrets(self, run: Run) -> Secrets:
        """The Secrets of the files, read again: they are kept nowhere else. Raises CommandError, so that the run
        waits, where it refers to Secrets and a file cannot be read."""
        if not Closure.from_json(run.closure).reads_secrets:
            return {}
        again = "give the files that hold its Secrets with -f"
        if STDIN in self.files:
            raise CommandError(f"{name_of(run)} came from standard input, which cannot be read again; {again}")
        manifests = await asyncio.to_thread(read, list(self.files), run.namespace)
        if manifests.findings:
            raise CommandError(f"{name_of(run)} cannot go on: {manifests.findings[0]}; mend that, or {again}")
        return secrets_of(manifests, run.namespace)


def _path(where: Where, run: UUID) -> Path:
    return where.state / "runs" / f"{run}.json"
