import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    directory = tmp_path / "workspace"
    directory.mkdir()
    return directory


@pytest.fixture
async def sandbox(workspace: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(workspace) as running:
        yield running


@pytest.fixture
async def sealed(sandbox: Sandbox) -> Sandbox:
    if not sandbox.sealed:
        pytest.skip(f"this kernel does not let a process seal itself: {sandbox.not_sealed_reason}")
    return sandbox


@pytest.fixture
async def sealable(sealed: Sandbox) -> None:
    """For tests that start sandboxes of their own, whose seal is required."""


@pytest.fixture
def python() -> str:
    """The interpreter for scripts that run inside."""
    return sys.executable
