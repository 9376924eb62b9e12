"""What is on record of a cluster that was made: which kind it is, where its API server is, and how it was started."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from e2e.cluster.layout import Layout

Kind = Literal["native", "kind"]

_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class State:
    """The record of a cluster. `boot` names the machine's start: a native cluster does not outlive it."""

    kind: Kind
    server: str
    programs: str
    mutating_admission_policy: bool
    boot: str

    @classmethod
    def load(cls, layout: Layout) -> "State | None":
        """The record of the cluster, or None if there is none that can be read."""
        try:
            return cls(**json.loads(_file(layout).read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def save(self, layout: Layout) -> None:
        """Writes the record, whole or not at all."""
        layout.run.mkdir(parents=True, exist_ok=True)
        draft = _file(layout).with_suffix(".draft")
        draft.write_text(json.dumps(asdict(self), indent=1))
        os.replace(draft, _file(layout))


@contextmanager
def exclusively(layout: Layout) -> Iterator[None]:
    """Waits until nobody else makes or removes the cluster, and keeps others from it."""
    layout.lock.parent.mkdir(parents=True, exist_ok=True)
    with layout.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def boot() -> str:
    """The id of this start of the machine."""
    return _BOOT.read_text().strip() if _BOOT.exists() else ""


def _file(layout: Layout) -> Path:
    return layout.run / "state.json"
