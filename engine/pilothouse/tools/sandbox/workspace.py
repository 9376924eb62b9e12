"""Paths that cannot leave the workspace, whatever links a tool has made or swaps in meanwhile.

Every path is resolved by the kernel, in one call, below an open directory (openat2 with RESOLVE_BENEATH and
RESOLVE_NO_MAGICLINKS): links inside the workspace work, a way out of it is an error, there is nothing to race with.
"""

import ctypes
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pilothouse.tools.sandbox.errors import OperationFailed, PathNotFound, PathRefused, RequestError

MAX_DEPTH = 100
"""Directories above a file, at most, for what is put and for what a snapshot can hold."""

_SYS_OPENAT2 = 437  # The same number on every architecture.
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RACES = 64
_DIRECTORY = os.O_PATH | os.O_DIRECTORY

_libc = ctypes.CDLL(None, use_errno=True)


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


class Workspace:
    """The one directory tree that file operations can reach; paths are relative to it, with `/`."""

    def __init__(self, directory: Path) -> None:
        self.path = directory.resolve(strict=True)
        self.fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def open(self, path: str, flags: int, *, links: bool = True) -> int:
        """A descriptor of the path; `links=False` refuses every symbolic link on the way and at its end."""
        how = _OpenHow(flags | os.O_CLOEXEC, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
        if not links:
            how.resolve |= _RESOLVE_NO_SYMLINKS
        name = _encode(path)
        for _ in range(_RACES):
            fd: int = _libc.syscall(_SYS_OPENAT2, self.fd, name, ctypes.byref(how), ctypes.sizeof(how))
            if fd >= 0:
                return fd
            if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
                break
        raise path_error(path, ctypes.get_errno())

    @contextmanager
    def directory(self, path: str) -> Iterator[int]:
        fd = self.open(path, _DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def reading(self, path: str) -> Iterator[int]:
        """A plain file, open for reading; a FIFO, socket or device is refused without waiting for it."""
        fd = self.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise PathRefused(f"{path!r} is not a plain file")
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def replacing(self, path: str, mode: int) -> Iterator[int]:
        """A new file, open for writing, that takes the path's place when the block ends without an error.

        Missing parents are made. A link at the path is replaced, not followed.
        """
        parent, name = split(path)
        self.make_directories(parent)
        temporary = f".{secrets.token_hex(8)}.part"
        with self.directory(parent) as directory:
            try:
                with _new_file(directory, temporary, mode) as fd:
                    yield fd
                os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
            except BaseException as error:
                _unlink(directory, temporary)
                if isinstance(error, OSError):
                    raise path_error(path, error.errno) from error
                raise

    def remove(self, path: str) -> None:
        """Removes a file, or a link itself; a directory is refused."""
        parent, name = split(path)
        with self.directory(parent) as directory:
            try:
                os.unlink(name, dir_fd=directory)
            except OSError as error:
                raise path_error(path, error.errno) from error

    def make_directories(self, path: str) -> None:
        parts = PurePosixPath(path).parts
        if len(parts) > MAX_DEPTH:
            raise PathRefused(f"{path[:80]!r}... is nested deeper than {MAX_DEPTH} directories")
        for depth in range(1, len(parts) + 1):
            self._make_directory(str(PurePosixPath(*parts[: depth - 1])), parts[depth - 1], "/".join(parts[:depth]))

    def _make_directory(self, parent: str, name: str, path: str) -> None:
        try:
            os.close(self.open(path, _DIRECTORY))
        except PathNotFound:
            with self.directory(parent) as fd:
                try:
                    os.mkdir(name, dir_fd=fd)
                except OSError as error:
                    raise path_error(path, error.errno) from error

    @contextmanager
    def scratch(self) -> Iterator[BinaryIO]:
        """A nameless file on the workspace's file system, open for writing and reading."""
        name = f".{secrets.token_hex(8)}.part"
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self.fd)
        with open(fd, "w+b") as file:
            os.unlink(name, dir_fd=self.fd)
            yield file


def split(path: str) -> tuple[str, str]:
    """(parent, name) of a path that is to name a file."""
    _encode(path)
    parent, _, name = path.rpartition("/")
    if name in ("", ".", "..") or path.startswith("/"):
        raise PathRefused(f"{path!r} must be a file's path relative to the workspace, such as 'notes/a.txt'")
    return parent or ".", name


def path_error(path: str, number: int | None) -> RequestError:
    match number:
        case errno.ENOENT:
            return PathNotFound(f"{path!r} does not exist in the workspace")
        case errno.EXDEV:
            return PathRefused(f"{path!r} leads out of the workspace")
        case errno.ELOOP:
            return PathRefused(f"{path!r} goes through a link that must not be followed")
        case errno.EISDIR | errno.ENOTDIR | errno.ENXIO | errno.EEXIST | errno.ENAMETOOLONG:
            return PathRefused(f"{path!r} cannot be used: {os.strerror(number)}")
        case errno.ENOSYS:
            return OperationFailed("this kernel has no openat2 (Linux 5.6), which keeps paths inside the workspace")
    return OperationFailed(f"{path!r}: {os.strerror(number or errno.EIO)}")


def _encode(path: str) -> bytes:
    try:
        name = os.fsencode(path)
    except UnicodeEncodeError as error:
        raise PathRefused(f"{path!r} is not valid text") from error
    if b"\0" in name or not name:
        raise PathRefused(f"{path!r} is empty or holds a NUL byte")
    return name


@contextmanager
def _new_file(directory: int, name: str, mode: int) -> Iterator[int]:
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=directory)
    try:
        yield fd
        os.fchmod(fd, mode & 0o777)
    finally:
        os.close(fd)


def _unlink(directory: int, name: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(name, dir_fd=directory)
