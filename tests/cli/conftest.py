"""Each test has a database, a folder, and the command that works on both."""

import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command import Cli, processes_of
from tests.store.fixtures import database, server_dsn

__all__ = ["cli", "database", "server_dsn"]


@pytest.fixture
def cli(tmp_path: Path, database: str) -> Iterator[Cli]:
    """What a failed test left running is ended."""
    yield Cli(tmp_path, ("--state", str(tmp_path / "state"), "--dsn", database))
    for pid in processes_of(tmp_path):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder whose path leaves room for the server's socket."""
    with tempfile.TemporaryDirectory(prefix="ph-") as folder:
        yield Path(folder)
