"""What the container says about its server."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pilothouse.store.errors import StoreUnusable

_PASSWORD = re.compile(r"[A-Za-z0-9._~-]{8,128}")
"""What needs no quoting, neither in SQL nor in a DSN."""


@dataclass(frozen=True, slots=True)
class Settings:
    """`volume` outlives the container. `run` is for this container alone; its path is short, as a socket's must be."""

    volume: Path
    run: Path
    password_file: Path
    port: int
    max_connections: int
    shared_buffers: str

    @classmethod
    def of(cls, arguments: Sequence[str] | None = None) -> "Settings":
        """Of the command line. Ends the process where it cannot be read."""
        return cls(**vars(_parser().parse_args(arguments)))

    @property
    def data(self) -> Path:
        """Not the volume's root: that holds `lost+found`, and its rights are the kubelet's to set."""
        return self.volume / "data"

    @property
    def unready(self) -> Path:
        """Where data is made before it counts, so that a killed start leaves nothing half made."""
        return self.volume / "data.unready"

    @property
    def lock(self) -> Path:
        return self.volume / "server.lock"

    @property
    def hba(self) -> Path:
        return self.run / "pg_hba.conf"

    @property
    def ready(self) -> Path:
        """Is there once the server takes connections; for a probe."""
        return self.run / "ready"

    def password(self) -> str:
        """Raises StoreUnusable where the file cannot be read or the password would need quoting."""
        try:
            password = self.password_file.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise StoreUnusable(f"the password cannot be read from {self.password_file}: {error}") from None
        if not _PASSWORD.fullmatch(password):
            raise StoreUnusable(
                f"the password in {self.password_file} cannot be used: "
                "give it 8 to 128 of the characters A-Z a-z 0-9 . _ ~ -"
            )
        return password


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -I -m pilothouse.store.bundled")
    parser.add_argument("volume", type=Path, help="the folder that keeps the data")
    parser.add_argument("--run", type=Path, required=True, help="a folder of this container, for the socket")
    parser.add_argument("--password-file", type=Path, required=True, help="holds the password of the user pilothouse")
    parser.add_argument("--port", type=int, default=5432)
    parser.add_argument("--max-connections", type=int, default=100)
    parser.add_argument("--shared-buffers", default="128MB", metavar="SIZE")
    return parser
