"""Running programs, and waiting for conditions, with failures that say what happened."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from e2e.cluster.errors import ClusterError

_TAIL = 25


def say(message: str) -> None:
    """Tells the user what is going on, on stderr: stdout is for what a command was asked for."""
    print(f"cluster: {message}", file=sys.stderr, flush=True)


def run(
    *command: str | Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
    timeout: float = 60,
) -> str:
    """Runs a program to its end and returns its stdout.

    Raises ClusterError with the end of its output if it cannot be started, fails or runs longer than `timeout` seconds.
    """
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, env=env, cwd=cwd, input=stdin or "", capture_output=True, text=True, timeout=timeout, check=False
        )
    except FileNotFoundError as error:
        raise ClusterError(f"the program {words[0]!r} is not on PATH, or its folder {cwd} is gone") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"`{_shown(words)}` did not end within {timeout:.0f} s") from error
    if done.returncode != 0:
        raise ClusterError(f"`{_shown(words)}` failed with code {done.returncode}:\n{tail(done.stdout + done.stderr)}")
    return done.stdout


def succeeds(*command: str | Path, env: Mapping[str, str] | None = None, timeout: float = 10) -> bool:
    """Tells whether a program runs to its end with code 0."""
    try:
        run(*command, env=env, timeout=timeout)
    except ClusterError:
        return False
    return True


def wait_for(
    what: str, holds: Callable[[], bool], seconds: float, hint: Callable[[], str] = lambda: "", pause: float = 0.2
) -> None:
    """Returns once `holds()`, asked every `pause` seconds; raises ClusterError with `hint()` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise ClusterError(f"{what}: not so after {seconds:.0f} s\n{hint()}".rstrip())
        time.sleep(pause)


def tail(text: str) -> str:
    """Returns the last lines of a program's output, where its reason for failing stands."""
    return "\n".join(text.strip().splitlines()[-_TAIL:])


def _shown(words: list[str]) -> str:
    shown = " ".join(words)
    return shown if len(shown) <= 160 else shown[:159] + "…"
