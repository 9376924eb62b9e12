"""What may be wrong with a directory before the server starts, and with the server when it does not."""

import os
from collections.abc import Iterable
from pathlib import Path

from pilothouse.store.embedded.owner import Owner
from pilothouse.store.errors import StoreUnusable

_SOCKET_LIMIT = 103
"""Bytes of a Unix socket's path that every system takes."""

_CHILDREN_LEFT = "pre-existing shared memory block"
_PROCESS_LEFT = 'lock file "postmaster.pid" already exists'

_DAMAGED = "postmaster.pid cannot be read; if no server runs on this data, delete that file"

_REASONS = {
    "No space left on device": "the disk is full; free space and start again",
    _PROCESS_LEFT: (
        "postmaster.pid names a living process that is not this server; "
        "if no server runs on this data, delete that file"
    ),
    "bogus data in lock file": _DAMAGED,
    "invalid data in PID file": _DAMAGED,
    'lock file "postmaster.pid" is empty': _DAMAGED,
    'postmaster.pid" is empty': _DAMAGED,
    _CHILDREN_LEFT: "an old server is still ending; start again in a moment",
    "incompatible with server": "the data is of another version of PostgreSQL; name another directory",
    "ermission denied": "the server's user cannot read or write there; name a directory that it can use",
    "wrong ownership": "the data belongs to another user; work as that user, or name another directory",
}


def reason_in(output: str) -> str:
    """What the server's own words mean for its user."""
    for sign, meaning in _REASONS.items():
        if sign in output:
            return meaning
    return "its own words say why"


def may_pass(output: str) -> bool:
    """Whether a start failed as it does for a moment after the server was killed."""
    return _CHILDREN_LEFT in output or _PROCESS_LEFT in output


def prepare_directory(directory: Path, owner: Owner, ours: Iterable[Path]) -> None:
    """Makes the directory where it is not there, so that the owner can pass. Raises StoreUnusable where it holds
    anything but `ours`."""
    try:
        missing = [folder for folder in (directory, *directory.parents) if not folder.exists()]
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        for folder in missing:
            owner.let_into(folder)
        strangers = sorted(set(directory.iterdir()) - set(ours))
    except OSError as error:
        raise StoreUnusable(f"{directory} cannot be used: {error.strerror}; name another directory") from None
    if strangers:
        raise StoreUnusable(
            f"{directory} holds other files, as `{strangers[0].name}`; name an empty or a new directory"
        )


def check_socket(socket: Path) -> None:
    """Raises StoreUnusable where the path of the server's socket would be too long for the system, or where
    `pg_ctl`, which gives its paths to a shell in double quotes, would have the shell take a part for a command."""
    if odd := sorted(set(str(socket)) & set('$`"\\\n')):
        raise StoreUnusable(
            f"{str(socket)!r} holds {odd[0]!r}, which PostgreSQL's start cannot take; name another folder"
        )
    length = len(os.fsencode(socket))
    if length > _SOCKET_LIMIT:
        raise StoreUnusable(
            f"{socket} is {length} bytes long, and a Unix socket's path at most {_SOCKET_LIMIT}: "
            f"name a directory whose path is {length - _SOCKET_LIMIT} bytes shorter"
        )


def check_data(data: Path, owner: Owner, version: int) -> bool:
    """Whether the data is there. Raises StoreUnusable where it is another's, of another version, or none."""
    try:
        if not data.exists():
            return False
        owner.check_owns(data)
        found = (data / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise StoreUnusable(f"{data} is no data directory of PostgreSQL: name another directory") from None
    except OSError as error:
        raise StoreUnusable(f"{data} cannot be read: {error.strerror}; name another directory") from None
    if found != str(version):
        raise StoreUnusable(
            f"{data} was made by PostgreSQL {found}, and this pilothouse runs {version}: "
            "move the data with pg_upgrade, or name another directory"
        )
    return True
