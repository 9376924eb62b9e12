"""What happened in the world: a file to which the agent's processes add a line for each fact, on the disk at once."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any


class Ledger:
    """Facts, each with a kind: `effect` of a call, `asked` of a model, `said` to the agent, `kept` of an entry,
    `point` of a write."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def note(self, kind: str, fact: Any) -> None:
        descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(descriptor, json.dumps([kind, fact]).encode() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def facts(self, kind: str) -> list[Any]:
        """In the order of their noting."""
        lines = self._file.read_text().splitlines() if self._file.exists() else []
        return [fact for other, fact in map(json.loads, lines) if other == kind]

    def effects(self) -> Counter[str]:
        """How often each call had its effect."""
        return Counter(self.facts("effect"))
