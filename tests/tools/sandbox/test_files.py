"""Files go in and out whole, and no path leads out of the workspace."""

import asyncio
import os
import resource
import socket
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import OperationFailed, PathNotFound, PathRefused, SandboxError
from pilothouse.tools.sandbox.workspace import Workspace
from tests.tools.sandbox.processes import server_of

pytestmark = pytest.mark.feature("B35")

SECRET = b"the secret outside"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    directory = tmp_path / "outside"
    directory.mkdir()
    (directory / "file").write_bytes(SECRET)
    return directory


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"a\0b\r\n\xff\xfe", os.urandom(10_000_000)], ids=["empty", "nul", "raw", "10MB"]
)
async def test_a_file_comes_back_as_it_was_put(sandbox: Sandbox, workspace: Path, data: bytes) -> None:
    await sandbox.put("some/new/directory/file", data, mode=0o640)
    content = await sandbox.get("some/new/directory/file", max_bytes=20_000_000)
    assert (content.data, content.size, content.mode, content.truncated) == (data, len(data), 0o640, False)
    assert (workspace / "some/new/directory/file").read_bytes() == data


async def test_a_large_file_can_be_read_in_part(sandbox: Sandbox) -> None:
    await sandbox.put("file", bytes(1_000_000))
    content = await sandbox.get("file", max_bytes=100_000)
    assert (len(content.data), content.size, content.truncated) == (100_000, 1_000_000, True)


async def test_odd_names_are_only_names(sandbox: Sandbox, workspace: Path) -> None:
    for name in ("a b", "-rf", "ü", "\udcff", "a\nb", "...", "..a", "*", "$(id)", "x" * 255):
        await sandbox.put(name, b"1")
        assert (await sandbox.get(name, max_bytes=10)).data == b"1"
    assert len(os.listdir(workspace)) == 10


async def test_a_put_replaces_all_at_once_or_not_at_all(sandbox: Sandbox, workspace: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"new"
        raise LookupError

    await sandbox.put("file", b"old")
    with pytest.raises(LookupError):
        await sandbox.put("file", broken())
    assert (workspace / "file").read_bytes() == b"old"
    assert os.listdir(workspace) == ["file"]


async def test_a_program_that_was_put_runs(sandbox: Sandbox) -> None:
    await sandbox.put("bin/hello", b"#!/bin/sh\necho hello\n", mode=0o755)
    assert (await sandbox.run(["bin/hello"], timeout=10)).stdout == b"hello\n"


async def test_set_user_id_bits_are_not_set(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.put("file", b"", mode=0o6755)
    assert stat.S_IMODE((workspace / "file").stat().st_mode) == 0o755


ESCAPES = [
    "",
    ".",
    "..",
    "/",
    "../outside/file",
    "directory/../../outside/file",
    "/etc/passwd",
    "link/file",
    "far",
    "root/etc/passwd",
]
ESCAPES += ["dangling/file", "loop/file", "directory", "file/below", "a\0b", "\ud800", "x" * 256, "d/" * 3000 + "f"]


@pytest.fixture
def traps(workspace: Path, outside: Path) -> None:
    (workspace / "link").symlink_to(outside)
    (workspace / "far").symlink_to("../outside/file")
    (workspace / "root").symlink_to("/proc/self/root")
    (workspace / "dangling").symlink_to("/nowhere")
    (workspace / "loop").symlink_to("loop")
    (workspace / "directory").mkdir()
    (workspace / "file").write_bytes(b"")


@pytest.mark.usefixtures("traps")
@pytest.mark.parametrize("path", ESCAPES)
async def test_nothing_outside_can_be_read(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(PathRefused):
        await sandbox.get(path, max_bytes=100)


@pytest.mark.usefixtures("traps")
@pytest.mark.parametrize("path", [path for path in ESCAPES if path != "far"])
async def test_nothing_outside_can_be_written(sandbox: Sandbox, outside: Path, path: str) -> None:
    with pytest.raises(PathRefused):
        await sandbox.put(path, b"changed")
    assert (outside / "file").read_bytes() == SECRET
    assert os.listdir(outside) == ["file"]


async def test_a_link_is_replaced_by_a_put_not_followed(sandbox: Sandbox, workspace: Path, outside: Path) -> None:
    (workspace / "far").symlink_to(outside / "file")
    (workspace / "dangling").symlink_to(outside / "new")
    await sandbox.put("far", b"mine")
    await sandbox.put("dangling", b"mine")
    assert not (workspace / "far").is_symlink()
    assert (outside / "file").read_bytes() == SECRET
    assert os.listdir(outside) == ["file"]


async def test_links_that_stay_inside_work(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.put("releases/2/file", b"two")
    (workspace / "current").symlink_to("releases/2")
    (workspace / "releases/up").symlink_to("../current/file")
    assert (await sandbox.get("current/file", max_bytes=10)).data == b"two"
    assert (await sandbox.get("releases/up", max_bytes=10)).data == b"two"


async def test_a_missing_file_is_told_from_a_refused_one(sandbox: Sandbox, workspace: Path) -> None:
    (workspace / "dangling").symlink_to("missing")
    for path in ("missing", "missing/file", "dangling"):
        with pytest.raises(PathNotFound):
            await sandbox.get(path, max_bytes=10)


async def test_what_is_not_a_plain_file_is_refused_without_waiting(sandbox: Sandbox, workspace: Path) -> None:
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        here = os.open(workspace, os.O_PATH)
        listener.bind(f"/proc/self/fd/{here}/socket")
        os.close(here)
        for path in ("fifo", "socket"):
            with pytest.raises(PathRefused):
                await sandbox.get(path, max_bytes=10)


async def test_a_device_is_refused(sandbox: Sandbox, workspace: Path) -> None:
    try:
        os.mknod(workspace / "zero", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("making a device needs the capability CAP_MKNOD")
    with pytest.raises(PathRefused, match="not a plain file"):
        await sandbox.get("zero", max_bytes=10)


async def test_a_write_that_fails_is_an_error_that_leaves_the_sandbox_usable(sandbox: Sandbox, workspace: Path) -> None:
    """As on a full disk: here the system refuses to let a file grow."""
    resource.prlimit(await server_of(sandbox), resource.RLIMIT_FSIZE, (100_000, 100_000))
    await sandbox.put("file", b"old")
    with pytest.raises(OperationFailed, match="'file': File too large"):
        await sandbox.put("file", bytes(1_000_000))
    assert (await sandbox.get("file", max_bytes=10)).data == b"old"
    assert os.listdir(workspace) == ["file"]


SWAPPER = """
import ctypes, os, sys
os.mkdir("d")
open("d/file", "w").write("inside")
os.symlink(sys.argv[1], "out")
print("ready", flush=True)
while True:
    ctypes.CDLL(None).renameat2(-100, b"d", -100, b"out", 2)  # Exchanges the directory and the link at once.
"""


async def test_a_link_swapped_in_meanwhile_opens_no_way_out(sandbox: Sandbox, workspace: Path, outside: Path) -> None:
    ready = asyncio.Event()
    argv = [sys.executable, "-I", "-c", SWAPPER, str(outside)]
    swapping = asyncio.create_task(sandbox.run(argv, timeout=1000, on_output=lambda stream, data: ready.set()))
    await ready.wait()
    seen: set[object] = set()
    for _ in range(400):
        seen.add(await _attempt(sandbox, "d/file"))
        seen.add(await _attempt(sandbox, "d/new"))
    swapping.cancel()
    await asyncio.gather(swapping, return_exceptions=True)
    assert PathRefused in seen, "the link was never met, so this proves nothing"
    assert b"inside" in seen, "the directory was never met, so this proves nothing"
    assert SECRET not in seen
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_bytes() == SECRET


async def _attempt(sandbox: Sandbox, path: str) -> object:
    try:
        if path.endswith("new"):
            await sandbox.put(path, b"planted")
            return None
        return (await sandbox.get(path, max_bytes=100)).data
    except SandboxError as error:
        return type(error)


PARTS = st.sampled_from(["..", ".", "", "in", "link", "up", "file", "abs", "\udc80"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(parts=st.lists(PARTS, max_size=8))
def test_no_path_at_all_opens_what_is_outside(workspace: Path, outside: Path, parts: list[str]) -> None:
    """A path is either refused or opens a file below the workspace: the kernel says which one it opened."""
    if not (workspace / "in").exists():
        (workspace / "in").mkdir()
        (workspace / "in" / "file").touch()
        (workspace / "in" / "up").symlink_to("..")
        (workspace / "link").symlink_to("in")
        (workspace / "up").symlink_to("../outside")
        (workspace / "abs").symlink_to(outside / "file")
    space = Workspace(workspace)
    try:
        fd = space.open("/".join(parts), os.O_PATH)
    except SandboxError:
        return
    finally:
        os.close(space.fd)
    opened = os.readlink(f"/proc/self/fd/{fd}")
    os.close(fd)
    assert (opened + "/").startswith(f"{workspace}/")
