"""What a sealed sandbox's commands cannot do. Each is tried for real, by a program inside."""

import ctypes
import json
import os
import platform
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.tools.sandbox.seal import NAMESPACE_FLAGS, REFUSED, TERMINAL_INPUT
from tests.tools.sandbox.processes import server_of

pytestmark = pytest.mark.feature("B35")

SOCKETS = """
import errno, json, socket
tried = {}
for name in ("AF_INET", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_TIPC"):
    for make in (socket.socket, socket.socketpair):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            try: make(getattr(socket, name), kind); end = "opened"
            except OSError as error: end = errno.errorcode[error.errno]
            tried[f"{name} {make.__name__} {kind}"] = end
print(json.dumps(tried))
"""

CALLS = """
import ctypes, errno, json, sys
libc = ctypes.CDLL(None, use_errno=True)
ends = {}
for name, number, *arguments in json.loads(sys.argv[1]):
    ctypes.set_errno(0)
    result = libc.syscall(number, *[ctypes.c_ulong(argument) for argument in arguments])
    ends[name] = errno.errorcode[ctypes.get_errno()] if result < 0 else "worked"
print(json.dumps(ends))
"""


async def output(sandbox: Sandbox, script: str, *arguments: str) -> bytes:
    result = await sandbox.run([sys.executable, "-I", "-c", script, *arguments], timeout=30)
    assert result.exit_code == 0, result
    return result.stdout


async def inside(sandbox: Sandbox, script: str, *arguments: str) -> dict[str, str]:
    answers: dict[str, str] = json.loads(await output(sandbox, script, *arguments))
    return answers


async def test_no_socket_but_a_path_socket_can_be_opened(sealed: Sandbox) -> None:
    assert set((await inside(sealed, SOCKETS)).values()) == {"EACCES"}


async def test_a_socket_family_cannot_hide_in_the_upper_half_of_the_register(sealed: Sandbox) -> None:
    number = {"x86_64": 41, "aarch64": 198}[platform.machine()]
    calls = [("inet", number, socket.AF_INET | 1 << 32, 1, 0), ("minus", number, 2**64 - 1, 1, 0)]
    assert set((await inside(sealed, CALLS, json.dumps(calls))).values()) == {"EACCES"}


async def test_local_sockets_work(sealed: Sandbox) -> None:
    script = "import socket; a, b = socket.socketpair(); a.send(b'ok'); print(b.recv(9).decode())"
    assert await output(sealed, script) == b"ok\n"


async def test_every_call_of_the_table_is_refused(sealed: Sandbox) -> None:
    import pyseccomp

    calls, expected = [], {}
    for refusal in REFUSED:
        for call in refusal.calls:
            number = call if isinstance(call, int) else pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, call)
            calls.append((str(call), number, 0, 0, 0, 0, 0))
            expected[str(call)] = os.strerror(refusal.errno)
    ends = await inside(sealed, CALLS, json.dumps(calls))
    assert {name: os.strerror(getattr(__import__("errno"), end)) for name, end in ends.items()} == expected


async def test_no_namespace_can_be_made_by_clone(sealed: Sandbox) -> None:
    number = {"x86_64": 56, "aarch64": 220}[platform.machine()]
    calls = [(name, number, flag | signal.SIGCHLD, 0, 0, 0, 0) for name, flag in NAMESPACE_FLAGS.items()]
    assert set((await inside(sealed, CALLS, json.dumps(calls))).values()) == {"EPERM"}


async def test_nothing_can_be_typed_into_a_terminal(sealed: Sandbox) -> None:
    """Without the seal this is ENOTTY here; the upper half of the register is not looked at by the kernel."""
    number = {"x86_64": 16, "aarch64": 29}[platform.machine()]
    calls = [
        (f"{high} {name}", number, 0, high << 32 | request)
        for name, request in TERMINAL_INPUT.items()
        for high in (0, 1)
    ]
    assert set((await inside(sealed, CALLS, json.dumps(calls))).values()) == {"EPERM"}


async def test_threads_and_processes_still_start(sealed: Sandbox) -> None:
    script = (
        "import os, subprocess, threading; t = threading.Thread(target=print, args=('1',)); t.start(); t.join();"
        "subprocess.run(['true'], check=True); os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)"
    )
    assert await output(sealed, script) == b"1\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="int 0x80 is how an x86 processor calls a foreign ABI")
async def test_a_call_of_a_foreign_architecture_kills_the_process(sealed: Sandbox) -> None:
    script = """
import ctypes, mmap
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("b814000000cd80c3"))  # mov eax, 20 (getpid for i386); int 0x80; ret
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""
    result = await sealed.run([sys.executable, "-I", "-c", script], timeout=20)
    assert result.signal == signal.SIGSYS


async def test_a_command_cannot_reach_a_server_on_this_machine(sealed: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
        result = await sealed.run([sys.executable, "-I", "-c", script], timeout=20)
    assert b"PermissionError" in result.stderr


async def test_the_seal_is_what_refuses_it(workspace: Path) -> None:
    """The same program opens its sockets in a sandbox that was asked not to seal itself."""
    async with local_sandbox(workspace, require_seal=False) as sandbox:
        assert not sandbox.sealed
        assert "not asked" in sandbox.not_sealed_reason
        ends = await inside(sandbox, SOCKETS)
    assert (ends["AF_INET socket 1"], ends["AF_INET6 socket 2"]) == ("opened", "opened")


async def test_a_required_seal_is_given_or_the_sandbox_refused(workspace: Path, sealed: Sandbox) -> None:
    async with local_sandbox(workspace, require_seal=True) as sandbox:
        assert sandbox.sealed
        assert sandbox.not_sealed_reason == ""


async def test_commands_hold_no_power_and_dump_no_core(sandbox: Sandbox) -> None:
    result = await sandbox.run("grep -E '^(NoNewPrivs|CapEff)' /proc/self/status; ulimit -Hc; umask", timeout=10)
    lines = result.stdout.decode().split("\n")
    assert int(lines[0].split()[1], 16) & ~0b11011 == 0, "only power over files is left, and only to the root user"
    assert lines[1].split() == ["NoNewPrivs:", "1"]
    assert lines[2:4] == ["0", "0077"]


async def test_a_command_cannot_read_the_agent_or_its_own_server(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid in (os.getpid(), await server_of(sandbox)):
        for name in ("environ", "mem", "fd/0", "maps"):
            result = await sandbox.run(["head", "-c", "1", f"/proc/{pid}/{name}"], timeout=10)
            assert (result.exit_code, result.stdout) == (1, b""), f"/proc/{pid}/{name}"


async def test_a_command_cannot_signal_the_agent(sandbox: Sandbox) -> None:
    libc = ctypes.CDLL(None)
    if libc.syscall(444, None, ctypes.c_size_t(0), 1) < 6:
        pytest.skip("Landlock of this kernel is older than Linux 6.12 and does not scope signals")
    result = await sandbox.run(f"kill -0 {os.getpid()}", timeout=10)
    assert b"not permitted" in result.stderr.lower()


async def test_files_can_be_moved_between_directories(sandbox: Sandbox) -> None:
    """Landlock refuses that unless it is told otherwise."""
    script = "mkdir a b; echo x > a/f; mv -T a/f b/f; ln b/f a/h; cat a/h"
    assert (await sandbox.run(script, timeout=10)).stdout == b"x\n"


def test_the_server_imports_nothing_heavy() -> None:
    script = (
        "import sys, pilothouse.tools.sandbox.server;"
        "print(sorted({'pydantic', 'httpx', 'tarfile', 'yaml', 'rich', 'pyseccomp'} & set(sys.modules)))"
    )
    assert subprocess.check_output([sys.executable, "-I", "-c", script]) == b"[]\n"
