"""Model servers that others wrote, each a process of its own on a free port of 127.0.0.1."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

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
