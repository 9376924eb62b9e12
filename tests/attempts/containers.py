"""The two containers of an agent's Pod, made by hand: their users and groups, file systems and PID namespaces.

Each has its root file system read-only, `/run` of its own with the shared door in it (read-only for the sandbox), and
only the agent's has the token and the key. Their network is this machine's, as containers of one Pod share one.
"""

import os
import shutil
import sys
from asyncio.subprocess import Process
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.attempts.scene import Agent, Machine
from tests.tools.sandbox.processes import children, until

AGENT, SANDBOX, SHARED = 10001, 10002, 10003
DOOR, STORE, MODEL = "/run/pilothouse/sandbox", "/run/pilothouse/store", "/run/pilothouse/model"
WORKSPACE = "/run/workspace"

_UNSHARED = ("unshare", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")
_SCRIPT = """
user=$1; shift
mount -t tmpfs -o mode=755 none /run
while [ "$1" != -- ]; do
  mkdir -p "$2"
  mount --bind "$1" "$2"
  [ "$3" = rw ] || mount -o remount,bind,ro "$2"
  shift 3
done
shift
mount -t tmpfs -o mode=1777 none /dev/shm
mount -o remount,bind,ro /
exec setpriv --reuid "$user" --regid "$user" --groups 10003 --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
"""


def reason_why_not() -> str:
    """Why this machine cannot make containers; empty if it can."""
    if os.geteuid() != 0:
        return "only root makes containers"
    if not (shutil.which("unshare") and shutil.which("setpriv")):
        return "util-linux is missing"
    if os.path.realpath("/var/run") != "/run":
        return "/var/run is not /run here, and a Pod's files are expected below both"
    return ""


needed = pytest.mark.skipif(bool(reason_why_not()), reason=reason_why_not())


class Pod(Machine):
    """Starts the containers of a Pod, as often as a kubelet would."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        super().__init__(folder, stack)
        for name, user in (("store", AGENT), ("model", AGENT), ("workspace", SANDBOX)):
            (folder / name).mkdir(exist_ok=True)
            os.chown(folder / name, user, user)
        os.chown(folder / "door", 0, SHARED)
        (folder / "door").chmod(0o2777)
        (folder / "model/key").write_text("key-canary")

    async def agent(self, token: str, environment: Mapping[str, str], *kill: str) -> Agent:
        (self.folder / "store/token").write_text(token)
        volumes = (("store", STORE, "ro"), ("model", MODEL, "ro"), ("door", DOOR, "rw"))
        command = ("-m", "tests.attempts.agent", "-", *kill) if kill else ("-I", "-m", "pilothouse.attempts.pod")
        return Agent(await self._start(AGENT, volumes, command, environment))

    async def sandbox(self) -> Process:
        place = ("--connect", f"{DOOR}/agent", "--workspace", WORKSPACE, "--seal", "required")
        volumes = (("workspace", WORKSPACE, "rw"), ("door", DOOR, "ro"))
        return await self._start(SANDBOX, volumes, ("-I", "-m", "pilothouse.tools.sandbox", *place), {})

    async def _start(
        self, user: int, volumes: Sequence[tuple[str, str, str]], command: Sequence[str], variables: Mapping[str, str]
    ) -> Process:
        mounts = [part for name, target, mode in volumes for part in (str(self.folder / name), target, mode)]
        shell = ("sh", "-ec", _SCRIPT, "sh", str(user), *mounts, "--", sys.executable, *command)
        return await self.start(*_UNSHARED, *shell, PATH=os.environ["PATH"], **variables)


async def first_process(container: Process) -> int:
    """The container's first process, as this machine numbers it."""
    await until(lambda: children(container.pid))
    [first] = children(container.pid)
    return first
