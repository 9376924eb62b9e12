"""What a tool can reach from inside the sandbox of a real agent Pod: its workspace, and nothing of the agent's."""

import json
from typing import Any

import pytest

from e2e.cluster.clients import Kubectl
from e2e.isolation.scene import KEY, PROBE, AtWork
from e2e.release import Release

AGENT, SANDBOX, SHARED = 10001, 10002, 10003
OWN = {"/tmp", "/dev/shm", "/dev/termination-log"}  # noqa: S108
"""Places outside of the workspace that are the sandbox's own, as each container has them."""

# Prints in which of the folders a file is found.
LOOKS = """
import json, os, sys
print(json.dumps([place for place in sys.argv[1:] if os.path.exists(place + "/left-behind")]))
"""


@pytest.fixture(scope="module")
def at_work(release: Release, kubectl: Kubectl, shared_namespace: str) -> AtWork:
    return AtWork.of(kubectl.within(shared_namespace), "prober")


@pytest.fixture(scope="module")
def inside(release: Release, at_work: AtWork) -> dict[str, Any]:
    """What the probe has found that a tool ran."""
    query = (
        "SELECT t.result #>> '{value,content,0,text}' FROM tool_calls AS t JOIN attempts AS a ON a.id = t.attempt "
        "WHERE a.carrier = %s AND t.tool = 'shell' AND t.result IS NOT NULL"
    )
    [[text]] = release.sql(query, at_work.uid)
    told, end = json.JSONDecoder().raw_decode(text)
    assert text[end:].strip() == "[exit code 0]"
    found: dict[str, Any] = told
    return found


@pytest.fixture(scope="module")
def beside(at_work: AtWork) -> dict[str, Any]:
    """What the same probe finds in the agent's container, which is not sealed."""
    found: dict[str, Any] = at_work.python(PROBE, "--workspace", "/nowhere")
    return found


def test_the_probe_finds_what_there_is_to_find(beside: dict[str, Any]) -> None:
    """A probe that finds nothing anywhere would pass every other test."""
    assert {"AF_INET", "AF_INET6"} <= set(beside["sockets"])
    assert {"/var/run/pilothouse/store/token", "/var/run/pilothouse/model/key"} <= set(beside["secrets"])
    assert "PILOTHOUSE_WORK" in beside["environment"]
    assert "/run/pilothouse/sandbox" in beside["writable"]


def test_a_tool_has_no_socket_but_path_sockets(inside: dict[str, Any]) -> None:
    assert (inside["sockets"], inside["uring"], inside["abstract"]) == ([], False, [])


def test_a_tool_has_no_way_to_the_agent_but_the_one_that_was_taken(inside: dict[str, Any]) -> None:
    """The agent's socket is gone once the sandbox has connected, and its folder cannot be written."""
    assert (inside["doors"], inside["unlinked"]) == ([], [])
    assert "/run/pilothouse/sandbox" not in inside["writable"]


def test_a_tool_finds_no_token_no_key_and_no_dsn(inside: dict[str, Any], at_work: AtWork) -> None:
    assert inside["secrets"] == []
    assert set(inside["environment"]) <= {"HOME", "LANG", "PATH", "PWD", "TERM", "LC_CTYPE"}
    assert any(path.endswith("/key") for path in _holding_a_secret(at_work, "agent"))
    assert _holding_a_secret(at_work, "sandbox") == []


def _holding_a_secret(at_work: AtWork, container: str) -> list[str]:
    """Files of a container that hold the model's key, or a password of a database."""
    search = (
        f"grep -rlsE '{KEY}|postgres(ql)?://[^ ]*:[^ ]*@' /run /var/run /etc /tmp /dev/shm /workspace /proc/1 || true"
    )
    where = (f"--container={container}", "--")
    return at_work.kubectl("exec", at_work.name, *where, "sh", "-c", search).split()


def test_a_tool_writes_in_its_workspace_and_in_scratch_that_is_its_own(inside: dict[str, Any], at_work: AtWork) -> None:
    assert set(inside["writable"]) == OWN
    folders = sorted(OWN - {"/dev/termination-log"})
    leave = "; ".join(f"touch {folder}/left-behind" for folder in ("/workspace", *folders))
    at_work.kubectl("exec", at_work.name, "--container=sandbox", "--", "sh", "-ec", leave)
    assert at_work.python(LOOKS, "/workspace", *folders, container="sandbox") == ["/workspace", *folders]
    assert at_work.python(LOOKS, "/workspace", *folders) == []


def test_a_tool_sees_no_process_of_the_agent(inside: dict[str, Any], beside: dict[str, Any]) -> None:
    assert {process["user"] for process in inside["processes"]} == {SANDBOX}
    assert not any(process["traced"] for process in inside["processes"])
    [server] = [process for process in inside["processes"] if process["pid"] == 1]
    assert server["read"] == []
    assert AGENT in {process["user"] for process in beside["processes"]}


def test_a_tool_has_no_privilege(inside: dict[str, Any]) -> None:
    assert (inside["user"], set(inside["groups"])) == (SANDBOX, {SANDBOX, SHARED})
    assert inside["status"] == {"CapEff": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1", "Seccomp": "2"}
