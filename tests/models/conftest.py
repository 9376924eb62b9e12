"""Servers to speak to: raw ones in each format, and those that others wrote, each a process of its own."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilothouse.models.http import Limits
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.patience import Patience
from tests.models.dialects import DIALECTS, KEY, Dialect
from tests.models.wire import Naps, RawServer

SCRIPTS = Path(__file__).parent.parent / "peers"
FIXTURES = Path(__file__).parent / "aimock.json"


@contextmanager
def peer(folder: Path, program: str, *arguments: str) -> Iterator[str]:
    """Runs one of tests/peers; it prints its address and lives until its standard input is closed."""
    command = [str(folder / "bin" / program), *arguments]
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        try:
            assert address, f"{' '.join(command)} ended with {process.wait()}"
            yield f"{address}/v1"
        finally:
            assert process.stdin is not None
            process.stdin.close()
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


@pytest.fixture(scope="session")
def aimock(peers: Path) -> Iterator[str]:
    with peer(peers, "node", str(SCRIPTS / "aimock_server.mjs"), str(FIXTURES)) as url:
        yield url


@pytest.fixture(scope="session")
def llmock_url(peers: Path) -> Iterator[str]:
    with peer(peers, "python", str(SCRIPTS / "llmock_server.py")) as url:
        yield url


@pytest.fixture(scope="session")
def smollm(peers: Path) -> Iterator[str]:
    with peer(peers, "python", str(SCRIPTS / "smollm_server.py")) as url:
        yield url


@pytest.fixture
def naps() -> Naps:
    return Naps()


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.wire.api)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    spoken: Dialect = request.param
    return spoken


@pytest.fixture
def connect(naps: Naps, dialect: Dialect) -> Callable[..., HttpProvider]:
    def make(server: RawServer, **limits: float) -> HttpProvider:
        patience = Patience(limits=Limits(**limits), sleep=naps, jitter=lambda: 1.0)  # type: ignore[arg-type]
        return dialect.provider(server.url, api_key=lambda: KEY, patience=patience)

    return make
