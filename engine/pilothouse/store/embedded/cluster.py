"""The server's data directory and the commands that make, start and stop it."""

import asyncio
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from urllib.parse import quote

from pilothouse.store.embedded.binaries import Binaries
from pilothouse.store.embedded.checks import check_data, check_socket, may_pass, prepare_directory, reason_in
from pilothouse.store.embedded.owner import Owner
from pilothouse.store.embedded.processes import forget_dead
from pilothouse.store.embedded.reaper import answers
from pilothouse.store.errors import StoreUnusable

_INITDB = (
    *("-U", "postgres", "--auth=trust", "--no-instructions", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
"""Whoever can open the socket is trusted: it lies in a directory that only the owner (and root) can enter.
The locale is PostgreSQL's own, so that data sorts alike on every machine."""

_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "min_wal_size": "32MB",
    "max_wal_size": "256MB",
    "jit": "off",
    "timezone": "UTC",
}
"""Small and private. `fsync`, `synchronous_commit` and `full_page_writes` stay on: what was committed is on
disk. Without standbys the log needs to tell only what a restart needs (`wal_level`); compiling queries (`jit`)
costs more than our short ones take."""

_LOG_TAIL = 4_000
"""Bytes of the log's end that are searched for the reason of a failed start."""

_OLD_SERVER_TRIES = 12
_OLD_SERVER_PAUSE = 0.25
"""How often a start is tried while a killed server still ends, and the seconds in between."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """One server and its directory. `gate` is held while it is started, `users` while it is used."""

    directory: Path
    owner: Owner
    binaries: Binaries

    @classmethod
    def at(cls, directory: Path, owner: Owner) -> "Cluster":
        """The cluster of that directory, which is made where it is not there."""
        cluster = cls(directory.expanduser().absolute(), owner, Binaries.find())
        check_socket(cluster.socket)
        prepare_directory(cluster.directory, owner, (cluster.data, cluster.unready, cluster.gate, cluster.users))
        return cluster

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def unready(self) -> Path:
        """Where data is made before it counts, so that a killed initdb leaves nothing half made."""
        return self.directory / "data.unready"

    @property
    def gate(self) -> Path:
        return self.directory / "gate.lock"

    @property
    def users(self) -> Path:
        return self.directory / "users.lock"

    @property
    def log(self) -> Path:
        return self.data / "server.log"

    @property
    def socket(self) -> Path:
        return self.data / ".s.PGSQL.5432"

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self.data), safe='')}"

    @property
    def stop_command(self) -> list[str]:
        return [self.binaries.program("pg_ctl"), "stop", "-w", "-m", "fast", "-D", str(self.data)]

    async def is_running(self) -> bool:
        """Whether a server answers at this directory's socket; what postmaster.pid says proves nothing."""
        if not check_data(self.data, self.owner, self.binaries.version):
            return False
        return await asyncio.to_thread(answers, str(self.socket))

    async def start(self) -> None:
        """Like `start_again`, and makes the data where there is none."""
        if not self.data.exists():
            await self._make_data()
        await self.start_again()

    async def start_again(self) -> None:
        """Returns once the server takes connections. Raises StoreUnusable, saying what to do."""
        for _ in range(_OLD_SERVER_TRIES):
            self.log.unlink(missing_ok=True)
            forget_dead(self.data / "postmaster.pid")
            forget_dead(self.socket.with_name(f"{self.socket.name}.lock"))
            code, told = await self._run(self._start_command)
            if code == 0:
                return
            told = f"{told}\n{self._log_tail()}".strip()
            if not may_pass(told):
                break
            await asyncio.sleep(_OLD_SERVER_PAUSE)
        raise StoreUnusable(f"the server of {self.directory} does not start: {reason_in(told)}\n{told}")

    async def stop(self) -> None:
        """Only where the server answers: postmaster.pid may name a stranger, whom pg_ctl would end."""
        if await self.is_running():
            await self._run(self.stop_command)

    async def _make_data(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self.unready, ignore_errors=True)
        self.unready.mkdir(mode=0o700)
        os.chown(self.unready, self.owner.uid, self.owner.gid)
        self.owner.let_through(self.unready)
        self.owner.let_through(self.binaries.folder / "postgres")
        code, told = await self._run([self.binaries.program("initdb"), *_INITDB, "-D", str(self.unready)])
        if code != 0:
            raise StoreUnusable(f"no data can be made in {self.directory}: {reason_in(told)}\n{told}")
        self.unready.rename(self.data)

    @property
    def _start_command(self) -> list[str]:
        settings = " ".join(f"-c {name}={shlex.quote(value)}" for name, value in _SETTINGS.items())
        options = f"{settings} -k {shlex.quote(str(self.data))}"
        return [
            self.binaries.program("pg_ctl"),
            *("start", "-w", "-t", "60", "-D", str(self.data), "-l", str(self.log), "-o", options),
        ]

    async def _run(self, command: Sequence[str]) -> tuple[int, str]:
        """The exit code and what was told; through a file, as a server would keep a pipe open."""
        with TemporaryFile() as output:
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                **self.owner.identity(),
            )
            ending = asyncio.ensure_future(process.wait())
            try:
                code = await asyncio.shield(ending)
            except asyncio.CancelledError:
                await ending  # a server that is half started would be nobody's
                raise
            output.seek(0)
            return code, output.read().decode(errors="replace").strip()

    def _log_tail(self) -> str:
        try:
            return self.log.read_bytes()[-_LOG_TAIL:].decode(errors="replace").strip()
        except OSError:
            return ""
