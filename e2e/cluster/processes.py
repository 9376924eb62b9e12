"""The processes of a native cluster, found again by a mark in their environment.

There are no pid files. A process is the cluster's if its environment names the cluster's folder; it is the component X
if it says so too and runs X's program. That stays true whatever was killed or rebooted, and a reused process id cannot
be mistaken: signals go through a pidfd, which is opened before the mark is read.
"""

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster.commands import wait_for
from e2e.cluster.errors import ClusterError

_CLUSTER = "PILOTHOUSE_CLUSTER"
_COMPONENT = "PILOTHOUSE_COMPONENT"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Process:
    """A running process that bears a mark: which component's, and the file name of its program."""

    pid: int
    component: str
    program: str


def start(cluster: Path, component: str, command: tuple[str, ...], program: str, log: Path) -> None:
    """Starts a process that outlives this one and bears the mark; its output is appended to `log`.

    Returns once the command has become `program` (nsenter comes first), or has ended.
    """
    environment = {"PATH": _PATH, "HOME": str(Path.home()), _CLUSTER: str(cluster), _COMPONENT: component}
    with log.open("ab") as output, open(os.devnull) as nothing:
        streams = ((nothing, 0), (output, 1), (output, 2))
        actions = [(os.POSIX_SPAWN_DUP2, stream.fileno(), number) for stream, number in streams]
        pid = os.posix_spawnp(command[0], command, environment, file_actions=actions, setsid=True)

    def begun() -> bool:
        process = _read(Path("/proc") / str(pid), cluster)
        return _reaped(pid) or (process is not None and process.program == program)

    wait_for(f"{component} runs {program}", begun, seconds=10, pause=0.005)


def marked(cluster: Path) -> list[Process]:
    """All processes that bear the cluster's mark: the components, and what they started (containerd's shims)."""
    return [process for entry in Path("/proc").iterdir() if (process := _read(entry, cluster)) is not None]


def find(cluster: Path, component: str, program: str) -> Process | None:
    """The process of a component, if it runs."""
    for process in marked(cluster):
        if process.component == component and process.program == program:
            return process
    return None


def end(cluster: Path, process: Process, with_signal: signal.Signals, seconds: float) -> bool:
    """Sends a signal to the process and tells whether it ended within `seconds`. One that is gone has ended."""
    with _opened(process.pid) as descriptor:
        if descriptor is None or _read(Path("/proc") / str(process.pid), cluster) != process:
            return True
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, with_signal)
        ended = bool(select.select([descriptor], [], [], seconds)[0])
        _reaped(process.pid)
        return ended


def stop(cluster: Path, process: Process) -> None:
    """Ends a process: asks it to, and kills it if it has not ended within 10 seconds."""
    if not end(cluster, process, signal.SIGTERM, 10):
        kill(cluster, process)


def kill(cluster: Path, process: Process) -> None:
    """Kills a process and waits until it is gone."""
    if not end(cluster, process, signal.SIGKILL, 10):
        raise ClusterError(f"process {process.pid} ({process.program}) is still there 10 s after it was killed")


def _reaped(pid: int) -> bool:
    """Tells whether the process was a child of this one and has ended; then nothing is left of it."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False


@contextlib.contextmanager
def _opened(pid: int) -> Iterator[int | None]:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _read(entry: Path, cluster: Path) -> Process | None:
    if not entry.name.isdigit():
        return None
    try:
        environment = (entry / "environ").read_bytes().split(b"\0")
        command = (entry / "cmdline").read_bytes().split(b"\0")
    except OSError:  # ended meanwhile, or another user's
        return None
    marks = dict(word.decode(errors="replace").partition("=")[::2] for word in environment)
    if marks.get(_CLUSTER) != str(cluster):
        return None
    return Process(int(entry.name), marks.get(_COMPONENT, ""), Path(command[0].decode(errors="replace")).name)
