"""PostgreSQL's programs, run to their end."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

from pilothouse.store.embedded.binaries import Binaries
from pilothouse.store.embedded.checks import reason_in
from pilothouse.store.errors import StoreUnusable

MAJOR = 18
"""The version whose data this release reads. Another one is a change that users have to move their data for."""

_INITDB = (
    *("--username=postgres", "--auth=reject", "--no-instructions", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
"""Nobody gets in by the rules in the data: each start brings its own. The locale is PostgreSQL's own, so that
data sorts alike in every image."""

_ALONE = ("-c", "exit_on_error=on", "-c", "log_min_error_statement=panic")
"""A statement that fails is not told: it may hold the password."""


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of one version."""

    binaries: Binaries

    @classmethod
    def find(cls) -> "Programs":
        """Raises StoreUnusable where this version is not installed."""
        return cls(Binaries.find(MAJOR))

    @property
    def version(self) -> int:
        return self.binaries.version

    @property
    def server(self) -> str:
        return self.binaries.program("postgres")

    def initdb(self, data: Path) -> None:
        """Makes empty data. Raises StoreUnusable."""
        _run([self.binaries.program("initdb"), *_INITDB, "-D", str(data)])

    def alone(self, data: Path, statements: str) -> None:
        """Executes the statements, one a line, in a server that nobody else can reach. Raises StoreUnusable."""
        _run([self.server, "--single", "-D", str(data), *_ALONE, "postgres"], statements)

    def takes_connections(self, socket_folder: Path, port: int) -> bool:
        """Whether the server there is neither starting nor stopping."""
        command = [
            self.binaries.program("pg_isready"),
            "-q",
            "-h",
            str(socket_folder),
            "-p",
            str(port),
            "-U",
            "postgres",
        ]
        return subprocess.run(command, check=False).returncode == 0  # noqa: S603


def _run(command: list[str], text: str = "") -> None:
    ended = subprocess.run(  # noqa: S603
        command, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False
    )
    if ended.returncode != 0:
        name = Path(command[0]).name
        raise StoreUnusable(f"{name} failed: {reason_in(ended.stdout)}\n{ended.stdout.strip()}")
