"""What stands in for the container: the server's supervisor as a process of a user that is not root."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import STDOUT, Process
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from pilothouse.store.bundled.settings import Settings
from pilothouse.store.embedded.owner import Owner

PASSWORD = "correct-horse_1"


@dataclass
class Container:
    """One volume, and the servers that are started on it one after the other."""

    settings: Settings
    owner: Owner
    running: list[Process] = field(default_factory=list)

    @classmethod
    async def on(cls, folder: Path) -> "Container":
        settings = Settings(folder / "volume", folder / "run", folder / "password", _free_port(), 20, "16MB")
        container = cls(settings, await Owner.find())
        os.chown(folder, container.owner.uid, container.owner.gid)
        settings.volume.mkdir()
        os.chown(settings.volume, container.owner.uid, container.owner.gid)
        container.set_password(PASSWORD)
        return container

    @property
    def log(self) -> Path:
        """What the newest server and its supervisor print; a file, as a pipe would end only with its last writer."""
        return self.settings.password_file.with_name("log")

    def set_password(self, text: str) -> None:
        self.settings.password_file.write_text(text)
        self.settings.password_file.chmod(0o444)

    async def launch(self) -> Process:
        """Starts the supervisor, in a process group of its own."""
        self.settings.ready.unlink(missing_ok=True)
        with self.log.open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *self._command(), cwd="/", stdout=log, stderr=STDOUT, start_new_session=True, **self.owner.identity()
            )
        self.running.append(process)
        return process

    def _command(self) -> tuple[str, ...]:
        settings = self.settings
        return (
            *(sys.executable, "-I", "-m", "pilothouse.store.bundled", str(settings.volume)),
            *("--run", str(settings.run), "--password-file", str(settings.password_file)),
            *("--port", str(settings.port), "--max-connections", str(settings.max_connections)),
            *("--shared-buffers", settings.shared_buffers),
        )

    async def start(self) -> Process:
        """Returns once the server takes connections; fails with what was told where it does not come up."""
        process = await self.launch()
        async with asyncio.timeout(40):
            while not self.settings.ready.exists():
                assert process.returncode is None, self.log.read_text()
                await asyncio.sleep(0.05)
        return process

    async def refusal(self) -> str:
        """What a start tells that fails."""
        process = await self.launch()
        told = await self.told_by(process)
        assert process.returncode == 1, told
        return told

    async def told_by(self, process: Process) -> str:
        """All that it printed, once it has ended."""
        await process.wait()
        return self.log.read_text()

    def postmaster(self) -> int:
        return int((self.settings.data / "postmaster.pid").read_text().split()[0])

    def dsn(self, user: str = "pilothouse", database: str = "pilothouse", password: str = PASSWORD) -> str:
        return f"postgresql://{user}:{password}@127.0.0.1:{self.settings.port}/{database}"

    async def execute(
        self, statement: str, dsn: str | None = None, values: Sequence[object] = ()
    ) -> list[tuple[object, ...]]:
        async with await psycopg.AsyncConnection.connect(dsn or self.dsn()) as connection:
            cursor = await connection.execute(statement.encode(), values)
            return await cursor.fetchall() if cursor.description else []


def kill(process: Process) -> None:
    """Kills all processes of the container at once, as the kernel does when its first one is killed."""
    os.killpg(process.pid, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
