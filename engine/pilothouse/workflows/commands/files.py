"""Files that are laid into a command's directory before it runs. Standard library only: see `frames`."""

import os
from pathlib import Path


class FileRefused(ValueError):  # noqa: N818 - the outcome, as a caller reports it
    """A file that cannot be laid; the message names it and says why."""


def lay(work: Path, name: str, data: bytes) -> None:
    """Writes the file `name`, a path relative to `work`, with the directories above it."""
    target = Path(os.path.normpath(work / name))
    if not target.is_relative_to(work) or target == work:
        raise FileRefused(f"file `{name[:80]}` lies outside of the step's directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise FileRefused(f"file `{name[:80]}` cannot be written: {reason}") from None
