"""The workspace as a tar archive: the same files always give the same bytes, and a hostile archive changes nothing.

Entries are sorted by path; owner, group and time are zero; links stay links and are never followed. Sockets, FIFOs and
devices are left out, a hard link becomes a file of its own. Restoring checks the whole archive before it touches the
workspace, then makes the workspace equal to it. A link may point anywhere (a Python environment's links do): nothing
is ever written through one.
"""

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from pilothouse.tools.sandbox.errors import ArchiveRefused, OperationFailed, TooLarge
from pilothouse.tools.sandbox.protocol import CHUNK
from pilothouse.tools.sandbox.workspace import MAX_DEPTH, Workspace

_PLAIN = (tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE)


def pack(workspace: Workspace, max_bytes: int) -> Iterator[bytes]:
    """The archive in chunks; raises `TooLarge` before it would exceed `max_bytes`."""
    size = 0
    for chunk in _blocks(workspace):
        size += len(chunk)
        if size > max_bytes:
            raise TooLarge(f"the workspace's archive is over its limit of {max_bytes} bytes")
        yield chunk


def _blocks(workspace: Workspace) -> Iterator[bytes]:
    yield from _pack_directory(workspace.fd, PurePosixPath())
    yield bytes(2 * tarfile.BLOCKSIZE)


def _pack_directory(fd: int, path: PurePosixPath) -> Iterator[bytes]:
    if len(path.parts) > MAX_DEPTH:
        raise OperationFailed(f"the workspace is nested deeper than {MAX_DEPTH} directories")
    for name in sorted(os.listdir(fd), key=os.fsencode):
        status = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISDIR(status.st_mode):
            yield from _pack_subdirectory(fd, path / name)
        elif stat.S_ISLNK(status.st_mode):
            yield _header(path / name, tarfile.SYMTYPE, 0o777, target=os.readlink(name, dir_fd=fd))
        elif stat.S_ISREG(status.st_mode):
            yield from _pack_file(fd, path / name)


def _pack_subdirectory(parent: int, path: PurePosixPath) -> Iterator[bytes]:
    fd = os.open(path.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield _header(path, tarfile.DIRTYPE, os.fstat(fd).st_mode)
        yield from _pack_directory(fd, path)
    finally:
        os.close(fd)


def _pack_file(parent: int, path: PurePosixPath) -> Iterator[bytes]:
    fd = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise OperationFailed(f"{str(path)!r} changed while the workspace was read")
        yield _header(path, tarfile.REGTYPE, status.st_mode, size=status.st_size)
        yield from _contents(fd, path, status.st_size)
    finally:
        os.close(fd)


def _contents(fd: int, path: PurePosixPath, size: int) -> Iterator[bytes]:
    left = size
    while left:
        chunk = os.read(fd, min(left, CHUNK))
        if not chunk:
            raise OperationFailed(f"{str(path)!r} changed while the workspace was read")
        left -= len(chunk)
        yield chunk
    if padding := -size % tarfile.BLOCKSIZE:
        yield bytes(padding)


def _header(path: PurePosixPath, kind: bytes, mode: int, *, size: int = 0, target: str = "") -> bytes:
    entry = tarfile.TarInfo(str(path))
    entry.type, entry.mode, entry.size, entry.linkname = kind, mode & 0o777, size, target
    return entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def unpack(workspace: Workspace, archive: BinaryIO) -> Iterator[None]:
    """Make the workspace equal to the archive, a step at a time; raises `ArchiveRefused` before the first change."""
    yield from _check(archive)
    yield from _clear(workspace.fd)
    directories: list[tarfile.TarInfo] = []
    with _reader(archive) as entries:
        for entry in entries:
            if entry.isdir():
                directories.append(entry)
            yield from _place(workspace, entries, entry)
    for entry in reversed(directories):  # Last, for a directory may be read-only.
        _set_mode(workspace, entry)


def _reader(archive: BinaryIO) -> tarfile.TarFile:
    archive.seek(0)
    return tarfile.open(fileobj=archive, mode="r:", encoding="utf-8", errors="surrogateescape")


def _check(archive: BinaryIO) -> Iterator[None]:
    known: dict[str, bool] = {"": True}  # path -> is a directory
    end = 0
    try:
        with _reader(archive) as entries:
            for entry in entries:
                _check_entry(entry, known)
                known[entry.name] = entry.isdir()
                end = entry.offset_data + -(-entry.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
                yield
    except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError) as error:
        raise ArchiveRefused(f"not a valid tar archive: {error}") from error
    _check_end(archive, end)


def _check_entry(entry: tarfile.TarInfo, known: dict[str, bool]) -> None:
    name = entry.name
    if entry.type not in _PLAIN or entry.issparse() or entry.size < 0:
        raise ArchiveRefused(f"{name!r} is not a plain file, a directory or a symbolic link")
    if "\0" in name + entry.linkname or (entry.issym() and not entry.linkname):
        raise ArchiveRefused(f"{name!r} has an invalid name or target")
    _check_place(name, known)


def _check_place(name: str, known: dict[str, bool]) -> None:
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts) or len(parts) > MAX_DEPTH + 1:
        raise ArchiveRefused(f"{name!r} is not a path inside the workspace")
    if name in known:
        raise ArchiveRefused(f"{name!r} stands in the archive twice")
    if not known.get(name.rpartition("/")[0]):
        raise ArchiveRefused(f"{name!r} lies below something that is not a directory of the archive")


def _check_end(archive: BinaryIO, end: int) -> None:
    """The reader takes a damaged header for the end, so what follows the last entry must be zeros."""
    archive.seek(end)
    while rest := archive.read(CHUNK):
        if rest.strip(b"\0"):
            raise ArchiveRefused("the archive is damaged after its last readable entry")


def _clear(fd: int, depth: int = 0) -> Iterator[None]:
    """Remove all that is in the directory; links are removed, not followed."""
    if depth > 4 * MAX_DEPTH:
        raise OperationFailed(f"the workspace is nested deeper than {4 * MAX_DEPTH} directories")
    os.fchmod(fd, 0o700)
    for name in os.listdir(fd):
        if stat.S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
            yield from _remove_directory(fd, name, depth)
        else:
            os.unlink(name, dir_fd=fd)
        yield


def _remove_directory(parent: int, name: str, depth: int) -> Iterator[None]:
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        yield from _clear(fd, depth + 1)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _place(workspace: Workspace, entries: tarfile.TarFile, entry: tarfile.TarInfo) -> Iterator[None]:
    parent, _, name = entry.name.rpartition("/")
    fd = workspace.open(parent or ".", os.O_PATH | os.O_DIRECTORY, links=False)
    try:
        if entry.isdir():
            os.mkdir(name, 0o700, dir_fd=fd)
        elif entry.issym():
            os.symlink(entry.linkname, name, dir_fd=fd)
        else:
            yield from _write(fd, name, entries, entry)
    finally:
        os.close(fd)
    yield


def _write(parent: int, name: str, entries: tarfile.TarFile, entry: tarfile.TarInfo) -> Iterator[None]:
    contents = entries.extractfile(entry)
    if contents is None:
        raise ArchiveRefused(f"{entry.name!r} has no contents")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
        while chunk := contents.read(CHUNK):
            file.write(chunk)
            yield
        os.fchmod(file.fileno(), entry.mode & 0o777)


def _set_mode(workspace: Workspace, entry: tarfile.TarInfo) -> None:
    fd = workspace.open(entry.name, os.O_RDONLY | os.O_DIRECTORY, links=False)
    try:
        os.fchmod(fd, entry.mode & 0o777)
    finally:
        os.close(fd)
