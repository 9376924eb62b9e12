"""A snapshot says exactly what the workspace holds; a restore gives exactly that back, or changes nothing."""

import io
import os
import stat
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.errors import ArchiveRefused, RequestError, TooLarge
from pilothouse.tools.sandbox.local import local_sandbox

pytestmark = pytest.mark.feature("B35")

LIMIT = 50_000_000

FILL = """
umask 022; mkdir -p b/empty a/deep/er; printf 'x\\0y' > a/deep/er/file
echo run > a/script; chmod 750 a/script
: > zero; head -c 70000 /dev/zero > b/blocks
ln -s ../a/script b/link; ln -s /usr/bin/env absolute; ln -s nowhere dangling
mkdir locked; echo in > locked/file; chmod 500 locked; mkfifo fifo; ln zero hard
touch "$(printf 'new\\nline')" "$(printf 'raw\\377')" "$(printf 'n%.0s' $(seq 200))"
"""


def contents(root: Path) -> dict[str, tuple[int, bytes]]:
    """path -> (mode, bytes or link target) of all but the FIFO."""
    found = {}
    for directory, names, files in os.walk(root):
        for path in (Path(directory) / name for name in names + files):
            mode = path.lstat().st_mode
            data = os.readlink(path).encode() if path.is_symlink() else path.read_bytes() if stat.S_ISREG(mode) else b""
            if not stat.S_ISFIFO(mode):
                found[str(path.relative_to(root))] = (mode, data)
    return found


async def test_the_same_files_give_the_same_digest_wherever_they_are(sandbox: Sandbox, tmp_path: Path) -> None:
    await sandbox.run(FILL, timeout=20)
    first = await sandbox.snapshot(max_bytes=LIMIT)
    other = tmp_path / "other"
    other.mkdir()
    async with local_sandbox(other) as second:
        await second.run("touch zz; " + FILL + "rm zz; touch -d 2001-01-01 zero", timeout=20)
        assert await second.snapshot(max_bytes=LIMIT) == first


@pytest.mark.parametrize(
    "change",
    ["echo >> zero", "chmod 700 a/script", "mv a/script a/other", "ln -sf x dangling", "rmdir b/empty", "mkdir new"],
)
async def test_any_change_of_the_files_changes_the_digest(sandbox: Sandbox, change: str) -> None:
    await sandbox.run(FILL, timeout=20)
    before = (await sandbox.snapshot(max_bytes=LIMIT)).digest
    assert (await sandbox.run(change, timeout=10)).exit_code == 0
    assert (await sandbox.snapshot(max_bytes=LIMIT)).digest != before


async def test_a_restored_workspace_equals_the_snapshot(sandbox: Sandbox, workspace: Path, tmp_path: Path) -> None:
    await sandbox.run(FILL, timeout=20)
    snapshot = await sandbox.snapshot(max_bytes=LIMIT)
    other = tmp_path / "other"
    other.mkdir()
    async with local_sandbox(other) as second:
        await second.run("mkdir -p left/over; chmod 500 left; echo > zero; ln -s / a; ln -s /etc b", timeout=10)
        await second.restore(snapshot.archive, max_bytes=LIMIT)
        assert contents(other) == contents(workspace)
        assert await second.snapshot(max_bytes=LIMIT) == snapshot


async def test_a_snapshot_is_a_tar_archive_that_others_read(sandbox: Sandbox, workspace: Path, tmp_path: Path) -> None:
    await sandbox.run(FILL, timeout=20)
    (tmp_path / "a.tar").write_bytes((await sandbox.snapshot(max_bytes=LIMIT)).archive)
    (tmp_path / "by-tar").mkdir()
    subprocess.run(["tar", "-xpf", tmp_path / "a.tar", "-C", tmp_path / "by-tar"], check=True)  # noqa: ASYNC221
    assert contents(tmp_path / "by-tar") == contents(workspace)


async def test_an_empty_workspace_can_be_restored(sandbox: Sandbox, workspace: Path) -> None:
    empty = await sandbox.snapshot(max_bytes=LIMIT)
    await sandbox.put("a/b", b"x")
    await sandbox.restore(empty.archive, max_bytes=LIMIT)
    assert os.listdir(workspace) == []


async def test_a_snapshot_never_follows_a_link(sandbox: Sandbox, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"the secret outside")
    (workspace / "link").symlink_to(tmp_path / "outside")
    (workspace / "directory").symlink_to(tmp_path)
    snapshot = await sandbox.snapshot(max_bytes=LIMIT)
    assert b"the secret outside" not in snapshot.archive
    with tarfile.open(fileobj=io.BytesIO(snapshot.archive)) as tar:
        assert [(entry.name, entry.type) for entry in tar] == [
            ("directory", tarfile.SYMTYPE),
            ("link", tarfile.SYMTYPE),
        ]


async def test_a_snapshot_over_its_limit_is_refused(sandbox: Sandbox) -> None:
    await sandbox.run("truncate -s 1T sparse", timeout=10)
    with pytest.raises(TooLarge):
        await sandbox.snapshot(max_bytes=LIMIT)
    await sandbox.run("rm sparse; echo > small", timeout=10)
    assert len((await sandbox.snapshot(max_bytes=LIMIT)).archive) == 4 * 512


async def test_a_nest_of_directories_is_refused_not_a_crash(sandbox: Sandbox) -> None:
    await sandbox.run("for i in $(seq 300); do mkdir d && cd d || exit 1; done", timeout=20)
    with pytest.raises(RequestError, match="nested deeper"):
        await sandbox.snapshot(max_bytes=LIMIT)
    await sandbox.restore(bytes(1024), max_bytes=LIMIT)
    assert len((await sandbox.snapshot(max_bytes=LIMIT)).archive) == 1024


def entry(name: str, kind: bytes = tarfile.REGTYPE, data: bytes = b"", target: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, len(data), target
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


def sized(size: int) -> bytes:
    info = tarfile.TarInfo("big")
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


def pax(headers: dict[str, str]) -> bytes:
    info = tarfile.TarInfo("file")
    info.pax_headers = headers
    return info.tobuf(tarfile.PAX_FORMAT)


LINK = entry("link", tarfile.SYMTYPE, target="/usr")
HOSTILE: dict[str, Callable[[], bytes]] = {
    "absolute": lambda: entry("/etc/evil"),
    "parent": lambda: entry("../evil"),
    "parent inside": lambda: entry("a", tarfile.DIRTYPE) + entry("a/../../evil"),
    "dot": lambda: entry("./a"),
    "no name": lambda: entry(""),
    "through a link": lambda: LINK + entry("link/evil"),
    "link to parent": lambda: entry("up", tarfile.SYMTYPE, target="..") + entry("up/evil"),
    "directory over a link": lambda: LINK + entry("link", tarfile.DIRTYPE) + entry("link/evil"),
    "file over a link": lambda: LINK + entry("link"),
    "twice": lambda: entry("a") + entry("a"),
    "below a file": lambda: entry("a") + entry("a/b"),
    "without its directory": lambda: entry("a/b"),
    "hard link": lambda: entry("hard", tarfile.LNKTYPE, target="/etc/passwd"),
    "hard link inside": lambda: entry("a") + entry("b", tarfile.LNKTYPE, target="a"),
    "device": lambda: entry("device", tarfile.CHRTYPE),
    "block device": lambda: entry("device", tarfile.BLKTYPE),
    "fifo": lambda: entry("fifo", tarfile.FIFOTYPE),
    "empty link": lambda: entry("a", tarfile.SYMTYPE),
    "bomb": lambda: sized(10**13),
    "truncated": lambda: entry("a", data=bytes(5000))[:2000],
    "sparse bomb": lambda: pax({"GNU.sparse.major": "0", "GNU.sparse.size": str(10**13), "GNU.sparse.map": "0,0"}),
    "absolute by pax": lambda: pax({"path": "/etc/evil"}),
    "nul by pax": lambda: pax({"path": "a\0b"}),
    "negative size by pax": lambda: pax({"size": "-512"}),
    "long-name chain": lambda: entry("x", b"L", b"y") * 5000,
    "deep": lambda: entry("/".join("d" * 200)),
    "damaged": lambda: entry("a") + b"\1" * 512,
    "not tar": lambda: os.urandom(5000),
    "compressed": lambda: b"\x1f\x8b\x08" + bytes(600),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused_and_nothing_changes(
    sandbox: Sandbox, workspace: Path, tmp_path: Path, name: str
) -> None:
    await sandbox.put("mine", b"kept")
    with pytest.raises(ArchiveRefused):
        await sandbox.restore(entry("good") + HOSTILE[name]() + bytes(1024), max_bytes=LIMIT)
    assert contents(workspace) == {"mine": (0o100600, b"kept")}
    assert os.listdir(tmp_path) == ["workspace"]


async def test_an_archive_over_its_limit_is_refused(sandbox: Sandbox, workspace: Path) -> None:
    await sandbox.put("mine", b"kept")
    with pytest.raises(TooLarge):
        await sandbox.restore(bytes(3_000_000), max_bytes=1_000_000)
    assert contents(workspace) == {"mine": (0o100600, b"kept")}
