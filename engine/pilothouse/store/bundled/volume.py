"""The volume: whose it is while a server runs, and the data on it."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pilothouse.store.bundled.programs import Programs
from pilothouse.store.bundled.settings import Settings
from pilothouse.store.errors import StoreUnusable

_PAUSE = 0.1
"""Seconds between two looks at the lock."""

_MAKE_ACCOUNT = """\
CREATE ROLE pilothouse LOGIN
CREATE DATABASE pilothouse OWNER pilothouse
"""
"""One statement a line: so single-user mode reads them."""


@contextmanager
def held(settings: Settings, patience: float) -> Iterator[int]:
    """Holds the volume's lock and yields its handle, which every process of the server inherits: whoever has the
    lock knows that no process of an earlier server is left. Waits `patience` seconds, then raises StoreUnusable."""
    try:
        settings.volume.mkdir(parents=True, exist_ok=True)
        handle = os.open(settings.lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreUnusable(
            f"{settings.volume} cannot be written by uid {os.geteuid()}: {error.strerror}; give the volume to that user"
            " (some kinds of volumes, as hostPath, do not heed a Pod's fsGroup)"
        ) from None
    try:
        _wait_for(handle, settings, time.monotonic() + patience)
        yield handle
    finally:
        os.close(handle)


def _wait_for(handle: int, settings: Settings, deadline: float) -> None:
    while not _taken(handle):
        if time.monotonic() > deadline:
            raise StoreUnusable(f"another server still uses {settings.volume}; end it first")
        time.sleep(_PAUSE)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def prepare_data(settings: Settings, programs: Programs) -> None:
    """Leaves data of this version that no server uses, with the password of the settings. The lock must be held.
    Raises StoreUnusable."""
    if not settings.data.exists():
        _make(settings, programs)
    _check_version(settings, programs.version)
    # The lock says that the server which wrote this is gone. Its number may be that of a living process of this
    # container, which PostgreSQL would take for that server.
    (settings.data / "postmaster.pid").unlink(missing_ok=True)
    for left in settings.run.glob(".s.PGSQL.*"):  # a container that starts again finds its folder as it was
        left.unlink(missing_ok=True)
    settings.data.chmod(0o700)  # a kubelet that applies an fsGroup opens it to the group, and PostgreSQL refuses that
    programs.alone(settings.data, f"ALTER ROLE pilothouse PASSWORD '{settings.password()}'\n")


def _make(settings: Settings, programs: Programs) -> None:
    shutil.rmtree(settings.unready, ignore_errors=True)
    programs.initdb(settings.unready)
    programs.alone(settings.unready, _MAKE_ACCOUNT)
    settings.unready.rename(settings.data)


def _check_version(settings: Settings, version: int) -> None:
    try:
        found = (settings.data / "PG_VERSION").read_text().strip()
    except OSError as error:
        raise StoreUnusable(
            f"{settings.data} is no data of PostgreSQL ({error.strerror}): give the server an empty volume"
        ) from None
    if found != str(version):
        raise StoreUnusable(
            f"{settings.data} was made by PostgreSQL {found}, and this image runs {version}; nothing was changed: "
            f"dump it with an image that has PostgreSQL {found} and restore it into an empty volume"
        )
