"""A directory for a server of the test's own."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import pytest_asyncio

from pilothouse.store.embedded.cluster import Cluster
from pilothouse.store.embedded.owner import Owner


@pytest.fixture
def directory() -> Iterator[Path]:
    with TemporaryDirectory(prefix="ph-") as folder:
        yield Path(folder) / "server"


@pytest_asyncio.fixture
async def cluster(directory: Path) -> Cluster:
    return Cluster.at(directory, await Owner.find())
