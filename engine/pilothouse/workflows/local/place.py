"""A place: the directory of one attempt of a command step, and what its log proves.

`spec.json` says what to run, `work/` is the command's directory, `log` holds the frames. The entry point holds a
lock on `log` while it lives, so whoever comes later can tell a running command from a lost one.
"""

import fcntl
import json
import os
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pilothouse.records.failures import Failed, Failure, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.workflows.commands import frames
from pilothouse.workflows.commands.files import FileRefused, lay
from pilothouse.workflows.commands.outcome import CommandLog, read_log

ENTRYPOINT = (sys.executable, "-I", "-m", "pilothouse.workflows.commands.entrypoint")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt's command runs. Its name is derived from the attempt's nonce, so it is never reused."""

    path: Path

    @classmethod
    def of(cls, root: Path, attempt: Attempt) -> "Place":
        return cls(root / f"{attempt.step.path}-{attempt.number}-{attempt.nonce[:16]}")

    @property
    def work(self) -> Path:
        return self.path / "work"

    @property
    def log(self) -> Path:
        return self.path / "log"

    @property
    def output(self) -> Path:
        return self.path / "output.json"

    @property
    def command(self) -> Sequence[str]:
        """The entry point's argument vector."""
        return (*ENTRYPOINT, str(self.path / "spec.json"), str(self.log))

    def prepare(self, argv: Sequence[str], files: Mapping[str, str], timeout: float | None, confined: bool) -> None:
        """Lays out the directory. Doing it again before the command started changes nothing."""
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.work.mkdir(exist_ok=True, mode=0o700)
        for name, text in files.items():
            self._lay(name, text)
        spec = {
            "argv": list(argv),
            "cwd": str(self.work),
            "timeout": timeout,
            "output": str(self.output),
            "confined": confined,
        }
        self._write("spec.json", spec)

    def _write(self, name: str, body: Mapping[str, Any]) -> None:
        """The file is there as a whole or not at all."""
        draft = self.path / f"{name}.{secrets.token_hex(4)}"
        draft.write_text(json.dumps(body))
        draft.replace(self.path / name)

    def _lay(self, name: str, text: str) -> None:
        try:
            lay(str(self.work), name, text.encode("utf-8", "surrogatepass"))
        except FileRefused as error:
            raise Failed(FailureCode.INP, str(error)) from None

    def locked(self) -> bool:
        """Whether an entry point lives here now."""
        try:
            log = os.open(self.log, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(log)
        return False

    def begun(self) -> bool:
        """Whether anything was ever written to the log."""
        return self.log.exists() and self.log.stat().st_size > 0

    def over(self) -> bool:
        """Whether an entry point began here and lives no more. In this order: one may begin in between."""
        return self.begun() and not self.locked()

    def read(self) -> CommandLog:
        return read_log(self.data())

    def data(self) -> bytes:
        """The frames written up to now."""
        return self.log.read_bytes() if self.log.exists() else b""

    def stop(self, failure: Failure | None) -> bool:
        """Asks the entry point to end the command; where none ever began, makes sure that none will.

        The failure, where one is given, is what the attempt then ends in. True where nothing runs here.
        """
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        if failure is not None:
            self._write("stop.json", failure.to_json())
        while not self.forbid(frames.Exit(stopped=True)):
            if pid := self.read().pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                return False
            time.sleep(0.01)  # whoever holds the lock writes its first frame at once
        return True

    def forbid(self, end: frames.Exit) -> bool:
        """Writes an end into an empty log, under the lock that every entry point needs to begin: none will.
        False where one lives here."""
        log = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(log).st_size == 0:
                os.write(log, frames.encode_exit(end))
        except BlockingIOError:
            return False
        finally:
            os.close(log)
        return True

    def stop_failure(self) -> Failure | None:
        """The failure that `stop` was given."""
        try:
            return Failure.from_json(json.loads((self.path / "stop.json").read_bytes()))
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
