"""Files that are laid into a command's directory before it runs. Standard library only: see `frames`."""

import os


class FileRefused(ValueError):  # noqa: N818 - the outcome, as a caller reports it
    """A file that cannot be laid; the message names it and says why."""


def lay(work: str, name: str, data: bytes) -> None:
    """Writes the file `name`, a path relative to the absolute `work`, with the directories above it."""
    target = os.path.normpath(os.path.join(work, name))
    if not target.startswith(os.path.join(os.path.normpath(work), "")):
        raise FileRefused(f"file `{name[:80]}` lies outside of the step's directory")
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)
    except (OSError, ValueError) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise FileRefused(f"file `{name[:80]}` cannot be written: {reason}") from None
