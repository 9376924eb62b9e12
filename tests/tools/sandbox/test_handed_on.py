"""Variables that the sandbox's Pod was given for its tools."""

import os
from pathlib import Path

import pytest

from pilothouse.tools.sandbox.commands import HANDED_ON, _command
from pilothouse.tools.sandbox.protocol import Frame
from pilothouse.tools.sandbox.workspace import Workspace


def test_commands_get_the_named_variables_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TEAM": "a", "SECRET": "b", HANDED_ON: "TEAM,ABSENT"}.items():
        monkeypatch.setenv(name, value)
    given = _command(Frame(1, "run", {"argv": ["true"], "timeout": 1.0, "env": {}}), Workspace(tmp_path)).env
    assert given["TEAM"] == "a"
    assert {"SECRET", "ABSENT", HANDED_ON} & given.keys() == set()
    assert given["PATH"] == os.environ["PATH"]
