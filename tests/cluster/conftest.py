"""What the tests of e2e/cluster share. None of them makes a cluster: what cannot be had without one, e2e/ tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster.layout import Layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A cluster of no known name, whose folders are the test's own."""
    layout = Layout.of("t0", cache=tmp_path)
    layout.run.mkdir(parents=True)
    return layout


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Puts a shell script onto PATH, which holds nothing but /bin and what a test puts there."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/bin")

    def put(name: str, script: str) -> None:
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)

    return put
