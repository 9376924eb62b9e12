"""The process of an agent's container, with the files and the death that a test wants.

    python -m tests.attempts.agent [FILES [NUMBER before|after]]

FILES is a folder with `token`, `key` and `secrets`, whose `door/agent` is the sandbox's door for this very user; `-`
stands for the paths of a real Pod. The process ends with SIGKILL at the NUMBERth write of its store.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from pilothouse.attempts.pod import TERMINATED
from pilothouse.store.faults import KillAt, faulty
from pilothouse.store.ports import AttemptStore, RunStore


def main(folder: str = "-", number: str = "0", moment: Any = "before") -> int:
    """As `pilothouse.attempts.pod` begins."""
    signal.signal(signal.SIGTERM, lambda *_: os._exit(TERMINATED))
    from pilothouse.attempts.process import carry_out, remote
    from pilothouse.attempts.settings import Files, Settings
    from pilothouse.tools.sandbox.pod import Door

    files = Files()
    if folder != "-":
        place = Path(folder)
        door = Door(f"{place}/door/agent", os.geteuid(), os.getegid())
        files = Files(place / "token", place / "key", door, place / "secrets")

    @asynccontextmanager
    async def killing(settings: Settings, given: Files) -> AsyncIterator[AttemptStore]:
        async with remote(settings, given) as store:
            made = cast(RunStore, SimpleNamespace(attempt_store=lambda _: store))
            yield faulty(made, KillAt(int(number), moment)).attempt_store(store.ref)

    return carry_out(os.environ, files, killing)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
