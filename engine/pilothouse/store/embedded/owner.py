"""Who runs the server: this user, or, as PostgreSQL refuses root, a user made for it."""

import asyncio
import logging
import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.store.errors import StoreUnusable

_log = logging.getLogger(__name__)

ROOTS_USER = "pgserver"


@dataclass(frozen=True, slots=True)
class Owner:
    """The account that owns the data and runs the server."""

    name: str
    uid: int
    gid: int

    @classmethod
    async def find(cls) -> "Owner":
        """Raises StoreUnusable where root has no such user and cannot make one."""
        uid = os.geteuid()
        if uid != 0:
            return cls(_name_of(uid), uid, os.getegid())
        try:
            entry = pwd.getpwnam(ROOTS_USER)
        except KeyError:
            await _make_user()
            entry = pwd.getpwnam(ROOTS_USER)
        return cls(entry.pw_name, entry.pw_uid, entry.pw_gid)

    def identity(self) -> dict[str, Any]:
        """Arguments for a subprocess that is to run as this account."""
        if self.uid == os.geteuid():
            return {}
        return {"user": self.uid, "group": self.gid, "extra_groups": []}

    def as_arguments(self) -> list[str]:
        return [str(self.uid), str(self.gid)]

    def check_owns(self, path: Path) -> None:
        """Raises StoreUnusable where another account owns the path."""
        uid = path.stat().st_uid
        if uid != self.uid:
            raise StoreUnusable(
                f"{path} belongs to {_name_of(uid)}, and the server would run as {self.name}: "
                f"name another directory, or work as the user who made it"
            )

    def let_through(self, path: Path) -> None:
        """Lets the account pass through the folders above `path`, and tells of each that root had closed to it."""
        for folder in path.resolve().parents:
            if self.let_into(folder):
                _log.warning("%s gets o+x, so that the user %s can pass through it", folder, self.name)

    def let_into(self, folder: Path) -> bool:
        """Gives others the right to pass through the folder, not to list it; says whether that was needed."""
        mode = folder.stat().st_mode
        if self.uid == os.geteuid() or mode & stat.S_IXOTH:
            return False
        folder.chmod(mode | stat.S_IXOTH)
        return True


async def _make_user() -> None:
    command = ("useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin", ROOTS_USER)
    try:
        process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        _, told = await process.communicate()
    except FileNotFoundError:
        told = b"useradd is not installed"
    else:
        if process.returncode == 0:
            return
    raise StoreUnusable(
        f"PostgreSQL refuses to run as root, and the user `{ROOTS_USER}` cannot be made "
        f"({told.decode().strip()}): make it, or work as another user than root"
    )


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
