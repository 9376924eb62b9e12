"""The entry point of command steps, run for real: what it frames, and what the frames amount to."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pilothouse.records.failures import FailureCode
from pilothouse.records.states import AttemptState
from pilothouse.workflows.commands import frames
from pilothouse.workflows.commands.entrypoint import TAKEN
from pilothouse.workflows.commands.outcome import CommandLog, CommandOutcome, outcome, read_log

ENTRYPOINT = [sys.executable, "-I", "-m", "pilothouse.workflows.commands.entrypoint"]
Started = Callable[..., subprocess.Popen[bytes]]


class Place:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.log = path / "log"
        self.output = path / "output.json"

    def start(self, *argv: str, timeout: float | None = None, confined: bool = False) -> subprocess.Popen[bytes]:
        work = self.path / "work"
        work.mkdir(exist_ok=True)
        spec = {"argv": argv, "cwd": str(work), "timeout": timeout, "output": str(self.output), "confined": confined}
        (self.path / "spec").write_text(json.dumps(spec))
        env = {"PATH": os.environ["PATH"], "PILOTHOUSE_OUTPUT": str(self.output)}
        return subprocess.Popen([*ENTRYPOINT, str(self.path / "spec"), str(self.log)], env=env)

    def run(self, *argv: str, **options: Any) -> CommandOutcome:
        assert self.start(*argv, **options).wait(30) == 0
        return outcome(self.read())

    def python(self, code: str, **options: Any) -> CommandOutcome:
        return self.run(sys.executable, "-c", code, **options)

    def read(self) -> CommandLog:
        return read_log(self.log.read_bytes())

    def wait_for(self, text: str) -> None:
        while not self.log.exists() or text.encode() not in self.log.read_bytes():
            time.sleep(0.01)


def _gone(pid: int) -> bool:
    """Whether the process has ended, be it that nobody has asked for its status yet."""
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1]
    except FileNotFoundError:
        return True


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.feature("B34")
def test_a_command_that_succeeds_gives_its_output_object_and_its_streams(place: Place) -> None:
    result = place.python(
        "import os, sys, json; print('to out'); print('to err', file=sys.stderr);"
        "json.dump({'list': [1, 2.5, None]}, open(os.environ['PILOTHOUSE_OUTPUT'], 'w'))"
    )
    assert result == CommandOutcome(
        AttemptState.SUCCEEDED, {"list": [1, 2.5, None], "exitCode": 0, "stdout": "to out", "stderr": "to err"}
    )


@pytest.mark.feature("B34")
@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["sh", "-c", "echo why >&2; exit 3"], FailureCode.EXE, "exit code 3: why"),
        (["sh", "-c", "kill -9 $$"], FailureCode.EXE, "signal 9"),
        (["no-such-program"], FailureCode.ENV, "cannot start 'no-such-program'"),
        (["/etc/passwd"], FailureCode.ENV, "Permission denied"),
    ],
)
def test_a_command_that_fails_says_how(place: Place, argv: list[str], code: FailureCode, says: str) -> None:
    result = place.run(*argv)
    assert result.state is AttemptState.FAILED
    assert result.failure is not None
    assert result.failure.code is code
    assert says in result.failure.message


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("[1]", "must hold a JSON object"),
        ("{", "does not hold JSON"),
        ('{"stdout": 1}', "may not set `stdout`"),
        (" " * (frames.OUTPUT_LIMIT + 1), "more than 1,048,576 bytes"),
        ("[" * 200_000, "does not hold JSON"),
    ],
)
def test_an_output_object_that_cannot_be_read_fails_the_step(place: Place, written: str, says: str) -> None:
    (place.path / "given").write_text(written)
    result = place.run("sh", "-c", f'cp {place.path}/given "$PILOTHOUSE_OUTPUT"')
    assert result.failure is not None
    assert result.failure.code is FailureCode.VAL
    assert says in result.failure.message


@pytest.mark.feature("B34")
def test_a_timeout_ends_the_command_and_all_that_it_started(place: Place) -> None:
    script = "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & wait"
    result = place.run("sh", "-c", script, timeout=0.3)
    assert result.failure is not None
    assert result.failure.code is FailureCode.TMO
    assert _gone(int(result.outputs["stdout"]))


def test_what_a_command_leaves_in_the_background_is_not_waited_for(place: Place) -> None:
    result = place.run("sh", "-c", "sleep 1000 & echo done")
    assert result.state is AttemptState.SUCCEEDED
    assert result.outputs["stdout"] == "done"


def test_a_timeout_ends_a_command_that_has_closed_its_streams(place: Place) -> None:
    result = place.run("sh", "-c", "exec >&- 2>&-; sleep 1000", timeout=0.2)
    assert result.failure is not None
    assert result.failure.code is FailureCode.TMO


def test_a_background_process_that_closed_its_streams_is_ended_too(place: Place) -> None:
    result = place.run("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!")
    pid = int(result.outputs["stdout"])
    assert _gone(pid)


@pytest.mark.feature("B34")
def test_a_process_that_left_the_session_is_ended_with_the_command(place: Place) -> None:
    result = place.run("sh", "-c", "setsid sh -c 'sleep 1000 & echo $! $$; wait' & sleep 0.2; exit 0")
    assert [_gone(int(pid)) for pid in result.outputs["stdout"].split()] == [True, True]


@pytest.mark.parametrize("make", ["mkfifo", "mkdir"])
def test_an_output_that_is_no_regular_file_fails_the_step(place: Place, make: str) -> None:
    result = place.run("sh", "-c", f'{make} "$PILOTHOUSE_OUTPUT"')
    assert result.failure is not None
    assert result.failure.code is FailureCode.VAL


def test_a_term_to_the_entry_point_cancels_the_command(place: Place) -> None:
    process = place.start("sh", "-c", "echo ready; sleep 1000")
    place.wait_for("ready")
    process.terminate()
    assert process.wait(20) == 0
    assert outcome(place.read()).state is AttemptState.CANCELLED


def test_the_command_does_not_outlive_an_entry_point_that_is_killed(place: Place) -> None:
    process = place.start("sh", "-c", "echo pid $$; exec sleep 1000")
    place.wait_for('"out"')
    process.kill()
    process.wait()
    log = place.read()
    assert log.started
    assert log.end is None
    pid = int(log.stdout.split()[1])
    while not _gone(pid):
        time.sleep(0.01)


def test_a_log_sees_a_command_begin_once_however_often_it_is_started(place: Place) -> None:
    counter = place.path / "counter"
    argv = ("sh", "-c", f"echo x >> {counter}; sleep 0.1")
    crowd = [place.start(*argv) for _ in range(8)]
    codes = sorted(process.wait(30) for process in crowd)
    assert codes == [0] + [TAKEN] * 7
    assert place.start(*argv).wait(30) == TAKEN
    assert counter.read_text() == "x\n"


def test_bytes_that_are_no_text_survive_in_the_log(place: Place) -> None:
    raw = bytes(range(256)) * 40
    place.python("import sys; sys.stdout.buffer.write(bytes(range(256)) * 40)")
    assert place.read().stdout.encode("utf-8", "surrogateescape") == raw


def test_of_a_flood_of_output_the_beginning_and_the_end_are_kept(place: Place) -> None:
    code = "import sys\nfor i in range(400_000): sys.stdout.write(f'line {i:>30}\\n')"
    result = place.python(code)
    log = place.read()
    assert place.log.stat().st_size < 2 * frames.LOG_LIMIT
    assert log.stdout.startswith(f"line {0:>30}\n")
    assert result.outputs["stdout"].endswith(f"line {399_999:>30}")
    assert log.end is not None
    assert log.end.left_out + len(log.stdout) == 400_000 * 36


@pytest.mark.parametrize("cut", [0, 1, 10, 50, -2, -20])
def test_a_log_that_was_cut_is_no_proof_of_an_end(place: Place, cut: int) -> None:
    place.run("echo", "hello")
    data = place.log.read_bytes()
    assert read_log(data[:cut]).end is None


def test_each_line_is_short_enough_for_a_container_log(place: Place) -> None:
    place.python("print('\\x00\\u2028é\\U0001f600' * 100_000)")
    assert max(map(len, place.log.read_bytes().split(b"\n"))) < 16 * 1024


@pytest.mark.feature("B35")
@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("import socket; socket.socket(socket.AF_INET)", "PermissionError"),
        ("import socket; socket.create_connection(('127.0.0.1', 9))", "PermissionError"),
        ("x = bytearray(600 * 1024 * 1024)", "MemoryError"),
    ],
)
def test_confined_code_has_no_network_and_bounded_memory(place: Place, code: str, says: str) -> None:
    result = place.python(code, confined=True)
    assert result.failure is not None
    assert says in result.outputs["stderr"]


@pytest.mark.feature("B35")
def test_confined_code_has_one_processor(place: Place) -> None:
    result = place.python("import os; print(len(os.sched_getaffinity(0)))", confined=True)
    assert result.outputs["stdout"] == "1"


@pytest.mark.feature("B35")
@pytest.mark.skipif(os.getuid() == 0, reason="the kernel sets root no limit of processes: run as another user")
def test_confined_code_may_have_ten_processes_more(place: Place) -> None:
    code = "import subprocess\nfor i in range(50): subprocess.Popen(['sleep', '100'])"
    result = place.python(code, confined=True)
    assert result.failure is not None
    assert "BlockingIOError" in result.outputs["stderr"]


@pytest.mark.feature("B35")
def test_confined_code_that_runs_on_is_ended_at_its_time(place: Place) -> None:
    result = place.python("while True: pass", confined=True, timeout=0.3)
    assert result.failure is not None
    assert result.failure.code is FailureCode.TMO


@pytest.mark.parametrize(
    "forged",
    [
        b'{"start":5}',
        b'{"start":{"pid":1}}',
        b'{"exit":{"x":1}}',
        b'{"exit":{"code":"0"}}',
        b'{"exit":[]}',
        b'{"out":5}',
        b"[" * 200_000,
        b"\xff\xfe",
        b"null",
    ],
)
def test_what_a_command_forges_in_its_log_is_no_frame(forged: bytes) -> None:
    assert read_log(forged + b"\n") == CommandLog()


def test_the_entry_point_s_own_start_stands_against_a_later_one() -> None:
    log = read_log(frames.encode("start", {"pid": 100, "at": 0}) + frames.encode("start", {"pid": 200, "at": 0}))
    assert log.pid == 100
