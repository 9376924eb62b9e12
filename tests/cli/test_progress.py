"""Progress on a real terminal: a table that is renewed in place and leaves the terminal as it was."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.cli.command import PROGRAM, Cli, environment

SPEC = """\
  steps:
    - name: first
      runCommand: {command: [sh, -c, 'printf "\\\\033]0;title\\\\007" >&2; exit 3']}
    - {name: second, transform: {value: "${{ steps.first.state }}"}}
    - name: third
      needs: [second]
      runCommand: {command: [sh, -c, 'cd FOLDER; touch begun; until test -e go; do sleep 0.02; done']}
"""

SHOW_CURSOR, HIDE_CURSOR = "\x1b[?25h", "\x1b[?25l"


@dataclass
class Terminal:
    """A pseudo terminal of 100 columns, with a command on it."""

    process: subprocess.Popen[bytes]
    master: int
    slave: int
    shown: str = ""
    modes: list[object] = field(default_factory=list)

    def until(self, text: str) -> None:
        while text not in self.shown:
            self.shown += os.read(self.master, 65536).decode(errors="replace")

    def end(self) -> int:
        status = self.process.wait()
        os.set_blocking(self.master, False)
        try:
            while piece := os.read(self.master, 65536):
                self.shown += piece.decode(errors="replace")
        except BlockingIOError:
            return status
        return status


@contextmanager
def on_a_terminal(cli: Cli, *arguments: str) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    command, *rest = arguments
    process = subprocess.Popen(
        [*PROGRAM, command, *cli.where, *rest],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        env=environment() | {"TERM": "xterm-256color"},
    )
    try:
        yield Terminal(process, master, slave, modes=termios.tcgetattr(slave))
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def last_table(shown: str) -> str:
    """What stands on the screen at the end, without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown[shown.rindex("STEP") :]).replace("\r\n", "\n")


@pytest.mark.feature("B44")
def test_a_terminal_shows_a_table_of_the_steps_and_then_the_result(cli: Cli) -> None:
    file = cli.workflow(SPEC.replace("FOLDER", str(cli.folder)))
    with on_a_terminal(cli, "run", "-f", file) as terminal:
        terminal.until("Running")
        (cli.folder / "go").touch()
        assert terminal.end() == 0
        assert termios.tcgetattr(terminal.slave) == terminal.modes
    assert terminal.shown.count(HIDE_CURSOR) == terminal.shown.count(SHOW_CURSOR) > 0
    assert "\x1b]" not in terminal.shown, "a step's title sequence reached the terminal"
    assert "Traceback" not in terminal.shown
    rows = [line.split()[:2] for line in last_table(terminal.shown).splitlines()[:4]]
    assert rows == [["STEP", "STATE"], ["first", "Failed"], ["second", "Succeeded"], ["third", "Succeeded"]]
    assert "w/1 Succeeded in" in terminal.shown


def test_an_interrupt_at_the_terminal_closes_the_table_and_says_how_to_go_on(cli: Cli) -> None:
    file = cli.workflow(SPEC.replace("FOLDER", str(cli.folder)))
    with on_a_terminal(cli, "run", "-f", file) as terminal:
        terminal.until("third")
        while not (cli.folder / "begun").exists():
            terminal.until("STEP")
        os.killpg(terminal.process.pid, signal.SIGINT)
        assert terminal.end() == 130
        assert termios.tcgetattr(terminal.slave) == terminal.modes
    assert terminal.shown.rstrip().endswith("w/1 is paused; go on with: pilothouse resume w/1")
    assert terminal.shown.count(HIDE_CURSOR) == terminal.shown.count(SHOW_CURSOR) > 0
    assert "Traceback" not in terminal.shown
    (cli.folder / "go").touch()
    with on_a_terminal(cli, "resume") as terminal:
        assert terminal.end() == 0
    rows = [line.split()[:2] for line in last_table(terminal.shown).splitlines()[:4]]
    assert rows == [["STEP", "STATE"], ["first", "Failed"], ["second", "Succeeded"], ["third", "Succeeded"]]
