"""The entry point of a command step's Pod: lays the step's files and runs its command under `entrypoint`.

    python -m pilothouse.workflows.commands.pod run SPEC    lay the files and run; frames go to standard output
    python -m pilothouse.workflows.commands.pod lay SPEC    only lay them, for a container of the user's own image

SPEC is a file with the JSON of a `Spec`. Standard library only, and of it only what loads fast: see `frames`.
"""

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pilothouse.workflows.commands import entrypoint, frames
from pilothouse.workflows.commands.files import FileRefused, lay

WORK = "/workspace"
"""The command's directory."""

SPEC = "/pilothouse/spec/spec.json"
SECRETS = "/pilothouse/secrets"
"""Where the kubelet puts the Secrets that are files of the step."""

OUTPUT = "/tmp/pilothouse-output.json"  # noqa: S108 - the Pod's own
"""What the command knows as $PILOTHOUSE_OUTPUT."""


class Spec(NamedTuple):
    """What to run. `timeout` is in seconds. By path, `files` holds texts and `secret_files` where each Secret is."""

    argv: Sequence[str]
    timeout: float | None = None
    confined: bool = False
    files: Mapping[str, str] = {}
    secret_files: Mapping[str, str] = {}

    def to_json(self) -> dict[str, Any]:
        return self._asdict()

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Spec":
        return cls(**body)

    def contents(self) -> Iterator[tuple[str, bytes]]:
        """Every file with its bytes."""
        for path, text in self.files.items():
            yield path, text.encode("utf-8", "surrogatepass")
        for path, source in self.secret_files.items():
            yield path, read(source)


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def lay_files(spec: Spec, work: str) -> str:
    """What keeps the files from being laid; nothing where all are there."""
    try:
        for path, data in spec.contents():
            lay(work, path, data)
    except (FileRefused, OSError) as error:
        return str(error)
    return ""


def run(spec: Spec) -> None:
    """Runs the command in this process's directory; its frames go to standard output."""
    work = os.getcwd()
    body = {
        "argv": list(spec.argv),
        "cwd": work,
        "timeout": spec.timeout,
        "output": os.environ["PILOTHOUSE_OUTPUT"],
        "confined": spec.confined,
        "own_user": False,
    }
    write = entrypoint.writer(sys.stdout.fileno())
    if problem := lay_files(spec, work):
        write(frames.encode_exit(frames.Exit(problem=problem)))
    else:
        entrypoint.run(body, write)


def main(verb: str, path: str) -> None:
    spec = Spec.from_json(json.loads(read(path)))
    if verb == "run":
        run(spec)
    elif problem := lay_files(spec, os.getcwd()):
        sys.exit(problem)


if __name__ == "__main__":
    main(*sys.argv[1:])
