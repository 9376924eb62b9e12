"""A scene in memory, one in Postgres, and this machine to start processes on."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from pilothouse.store.memory import MemoryRunStore
from tests.attempts.scene import Machine, Scene, a_scene
from tests.store.fixtures import database, memory, postgres, server_dsn

__all__ = ["database", "machine", "memory", "postgres", "scene", "server_dsn"]


@pytest.fixture
async def scene(memory: MemoryRunStore) -> AsyncIterator[Scene]:
    async with a_scene(memory) as made:
        yield made


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with AsyncExitStack() as stack:
        yield Machine(tmp_path / "pod", stack)
