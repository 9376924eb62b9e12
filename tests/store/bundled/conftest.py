"""A volume with a server of the test's own."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest_asyncio

from pilothouse.store.bundled.programs import Programs
from tests.store.bundled.container import Container, kill


@pytest_asyncio.fixture
async def container() -> AsyncIterator[Container]:
    with TemporaryDirectory(prefix="ph-") as folder:
        container = await Container.on(Path(folder))
        container.owner.let_through(Path(Programs.find().server))
        yield container
        for process in container.running:
            with suppress(ProcessLookupError):
                kill(process)
            await process.wait()
