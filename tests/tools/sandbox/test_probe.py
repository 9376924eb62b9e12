"""The probe that e2e runs in real Pods, here in a sandbox of this machine: it finds what is open, and only that."""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from tests.tools.sandbox.processes import server_of

PROBE = Path(__file__).parents[3] / "e2e/isolation/probe.py"


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("probe", PROBE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


probe = _load()


async def probed(sandbox: Sandbox, *options: str) -> dict[str, Any]:
    result = await sandbox.run([sys.executable, "-I", str(PROBE), *options], timeout=50)
    assert result.exit_code == 0, result.stderr.decode()
    told: dict[str, Any] = json.loads(result.stdout)
    return told


async def test_a_sealed_sandbox_keeps_the_network_and_the_agent_away(
    sealed: Sandbox, workspace: Path, tmp_path: Path
) -> None:
    server = await server_of(sealed)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"\0pilothouse-test-{os.getpid()}")
        listener.listen()
        told = await probed(sealed, "--workspace", str(workspace), "--door", str(tmp_path / "door"), "--places")
    assert (told["sockets"], told["uring"], told["secrets"]) == ([], False, [])
    assert set(told["environment"]) <= {"PATH", "HOME", "LANG", "TERM", "LC_CTYPE"}
    assert (told["status"]["Seccomp"], told["status"]["NoNewPrivs"]) == ("2", "1")
    seen = {process["pid"]: process for process in told["processes"]}
    for pid in (os.getpid(), server):
        assert (seen[pid]["read"], seen[pid]["traced"]) == ([], False)
    assert not any("pilothouse-test" in name for name in told["abstract"])


def test_the_probe_finds_what_is_open(workspace: Path, tmp_path: Path) -> None:
    """A probe that finds nothing anywhere would pass every test. It tries only what this test has made."""
    door = tmp_path / "door"
    door.mkdir()
    (tmp_path / "token").write_text("secret")
    hidden = f"\0pilothouse-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as abstract:
        listener.bind(f"{door}/agent")
        abstract.bind(hidden)
        for server in (listener, abstract):
            server.listen(9)
        assert {"AF_INET", "AF_INET6"} <= {name for name in probe.FAMILIES if probe.opens(name)}
        assert list(probe.readable(tmp_path)) == [f"{tmp_path}/token"]
        assert probe.may_fill(str(door))
        assert hidden in probe.abstract()
        assert probe.connects(hidden)
        assert list(probe.path_sockets(workspace, [str(tmp_path)])) == [f"{door}/agent"]
        assert probe.connects(f"{door}/agent")
        assert list(probe.unlinked(door)) == ["agent"]


def test_the_probe_finds_a_process_that_is_open_and_leaves_it_running(tmp_path: Path) -> None:
    script = "import json, sys; sys.path.insert(0, sys.argv[1]); import probe; "
    script += "print(json.dumps(probe.process(int(sys.argv[2]))))"
    with subprocess.Popen(["sleep", "1000"]) as sleeping:
        command = [sys.executable, "-c", script, str(PROBE.parent), str(sleeping.pid)]
        told = json.loads(subprocess.check_output(command))
        assert (told["traced"], told["signalled"], "environ" in told["read"]) == (True, True, True)
        assert Path(f"/proc/{sleeping.pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"
        sleeping.kill()


async def test_a_sandbox_that_is_not_sealed_is_found_out(workspace: Path) -> None:
    async with local_sandbox(workspace, require_seal=False) as sandbox:
        script = "import sys; sys.path.insert(0, sys.argv[1]); import probe; print(probe.opens('AF_INET'))"
        result = await sandbox.run([sys.executable, "-c", script, str(PROBE.parent)], timeout=20)
    assert result.stdout == b"True\n"
