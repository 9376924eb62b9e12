"""What a tool can reach: run inside a sandbox, it tries everything, and prints what it found as one JSON object.

    python3 probe.py [--workspace DIR] [--door DIR] [--secrets DIR ...] [--places DIR ...]

It needs nothing but the standard library, so an agent's `file_write` and `shell` are enough to run it in a Pod. It
connects to sockets, makes and removes empty files, and seizes processes (which does not stop them): not for a machine
that is shared, unless `--places` says where it may do so.

    user, groups   who it runs as
    status         what the kernel says of it: capabilities, no_new_privs, seccomp
    environment    the names of its variables
    sockets        families of which a socket could be opened, but for path sockets
    uring          whether io_uring, which opens sockets too, could be set up
    secrets        files that it could read where a Pod's secrets are mounted
    writable       places outside of the workspace in which it could make a file, and devices that it could write to;
                   also every mount point, unless `--places` are given
    processes      of each other process: its user, and what of it could be read, traced or signalled
    abstract       abstract sockets of this network that it could connect to
    doors          path sockets outside of the workspace that it could connect to
    unlinked       entries of the door's folder that it could remove; an entry it could make is one of `writable`
"""

import argparse
import ctypes
import json
import os
import signal
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

SECRETS = ("/var/run/secrets", "/run/secrets", "/var/run/pilothouse", "/run/pilothouse", "/etc/pilothouse")
TOPS = ("", "bin", "dev", "etc", "home", "opt", "root", "run", "srv", "tmp", "usr", "usr/bin", "var")
BELOW = ("lib", "log", "run", "tmp")
PLACES = (*(f"/{name}" for name in TOPS), *(f"/var/{name}" for name in BELOW))
LARGE = ("/", "/bin", "/home", "/opt", "/proc", "/root", "/srv", "/sys", "/usr", "/usr/bin", "/var", "/var/lib")
"""Where no path sockets are looked for, unless a mount point is below."""
DEVICES = ("/dev/termination-log", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/dev/kmsg", "/dev/mem")
FAMILIES = [name for name in dir(socket) if name.startswith("AF_") and name not in ("AF_UNIX", "AF_UNSPEC")]
KINDS = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET)
_PTRACE_SEIZE = 0x4206  # Unlike PTRACE_ATTACH it leaves the process running; our end undoes it.
_SYS_PTRACE = {"x86_64": 101, "aarch64": 117}
_SYS_IO_URING_SETUP = 425

_libc = ctypes.CDLL(None, use_errno=True)


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workspace", type=Path, default=Path("/workspace"))
    parser.add_argument("--door", type=Path, default=Path("/run/pilothouse/sandbox"))
    parser.add_argument("--secrets", type=Path, nargs="*", default=[Path(place) for place in SECRETS])
    parser.add_argument("--places", nargs="*")
    given = parser.parse_args(argv)
    places = [*PLACES, *mounts()] if given.places is None else given.places
    outside = [place for place in [*places, str(given.door)] if not Path(place).is_relative_to(given.workspace)]
    sys.stdout.write(json.dumps(found(given.workspace, given.door, given.secrets, outside)) + "\n")


def mounts() -> list[str]:
    return [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]


def found(workspace: Path, door: Path, secrets: list[Path], outside: list[str]) -> dict[str, Any]:
    return {
        "user": os.getuid(),
        "groups": sorted({os.getgid(), *os.getgroups()}),
        "status": status("CapEff", "CapBnd", "NoNewPrivs", "Seccomp"),
        "environment": sorted(os.environ),
        "sockets": sorted(name for name in FAMILIES if opens(name)),
        "uring": uring(),
        "secrets": sorted(path for folder in secrets for path in readable(folder)),
        "writable": sorted({*filter(may_fill, outside), *(path for path in DEVICES if may_write(path))}),
        "processes": [process(pid) for pid in others()],
        "abstract": sorted(name for name in abstract() if connects(name)),
        "doors": sorted({path for path in path_sockets(workspace, outside) if connects(path)}),
        "unlinked": sorted(unlinked(door)),
    }


def status(*names: str) -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    return {name: fields[name].strip() for name in names}


def opens(family: str) -> bool:
    for kind in KINDS:
        for make in (socket.socket, socket.socketpair):
            with suppress(OSError):
                made = make(getattr(socket, family), kind)
                for end in made if isinstance(made, tuple) else (made,):
                    end.close()
                return True
    return False


def uring() -> bool:
    parameters = ctypes.create_string_buffer(256)
    return bool(_libc.syscall(_SYS_IO_URING_SETUP, 1, parameters) >= 0)


def readable(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError), open(os.path.join(parent, name), "rb") as file:
                file.read(1)
                yield os.path.join(parent, name)


def may_fill(folder: str) -> bool:
    attempt = os.path.join(folder, f".probe-{os.getpid()}")
    with suppress(OSError):
        os.close(os.open(attempt, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        os.unlink(attempt)
        return True
    return False


def may_write(path: str) -> bool:
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND))
        return True
    return False


def others() -> list[int]:
    return sorted(int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid())


def process(pid: int) -> dict[str, Any]:
    owner = None
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        owner = int(next(line for line in lines if line.startswith("Uid:")).split()[1])
    names = [name for name in ("environ", "mem", "maps", "root/etc/passwd", "cwd/.", "fd/0") if can_open(pid, name)]
    return {"pid": pid, "user": owner, "read": names, "traced": traced(pid), "signalled": signalled(pid)}


def can_open(pid: int, name: str) -> bool:
    with suppress(OSError):
        os.close(os.open(f"/proc/{pid}/{name}", os.O_RDONLY | os.O_NONBLOCK))
        return True
    return False


def traced(pid: int) -> bool:
    number = _SYS_PTRACE[os.uname().machine]
    return bool(_libc.syscall(number, _PTRACE_SEIZE, pid, 0, 0) == 0)


def signalled(pid: int) -> bool:
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def abstract() -> set[str]:
    names = {line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
    return {"\0" + name[1:] for name in names if name.startswith("@")}


def path_sockets(workspace: Path, outside: list[str]) -> Iterator[str]:
    for top in {*outside} - {*LARGE}:
        for parent, folders, names in os.walk(top):
            folders[:] = [name for name in folders if not Path(parent, name).is_relative_to(workspace)]
            for name in names:
                with suppress(OSError):
                    if stat.S_ISSOCK(os.stat(os.path.join(parent, name)).st_mode):
                        yield os.path.join(parent, name)


def connects(address: str) -> bool:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        with suppress(OSError), socket.socket(socket.AF_UNIX, kind) as made:
            made.settimeout(1)
            made.connect(address)
            return True
    return False


def unlinked(door: Path) -> Iterator[str]:
    with suppress(OSError):
        for name in os.listdir(door):
            with suppress(OSError):
                os.unlink(door / name)
                yield name


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main(sys.argv[1:])
