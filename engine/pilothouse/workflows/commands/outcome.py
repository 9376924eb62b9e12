"""What a command's log amounts to: an outcome, if the log proves one."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.states import AttemptState
from pilothouse.workflows.commands import frames

RESERVED = ("exitCode", "stdout", "stderr")
"""Outputs that every command step has; its own output object may not use these names."""


_NO_BYTE = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Halves of surrogate pairs that stand for no byte: our entry point frames none, a program that writes frames may."""


@dataclass(frozen=True, slots=True)
class CommandLog:
    """The log, read. `end` is None where the log does not say how the command ended."""

    started: bool = False
    pid: int = 0
    stdout: str = ""
    stderr: str = ""
    output: str = ""
    end: frames.Exit | None = None


@dataclass(frozen=True, slots=True)
class CommandOutcome:
    """The final state of the attempt, with plain JSON outputs."""

    state: AttemptState
    outputs: dict[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


def read_log(data: bytes) -> CommandLog:
    """Reads the frames; never raises, since anything may have cut the log short."""
    texts: dict[str, list[str]] = {"out": [], "err": [], "output": []}
    pid, end = 0, None
    for key, body in frames.decode(data):
        if key in texts:
            texts[key].append(body)
        elif key == "start":
            pid = body["pid"]
        elif key == "exit":
            end = frames.Exit(**body)
    out, err, output = ("".join(texts[name]) for name in ("out", "err", "output"))
    return CommandLog(pid > 0, pid, out, err, output, end)


def outcome(log: CommandLog) -> CommandOutcome:
    """The outcome of a log with an end. Success needs exit code 0 and an output object that can be read."""
    assert log.end is not None  # noqa: S101 - callers ask only then
    outputs: dict[str, Any] = {
        "exitCode": log.end.code,
        "stdout": _tail(log.stdout),
        "stderr": _tail(log.stderr),
    }
    failure = _failure(log, log.end)
    if failure is None:
        own, failure = _own_outputs(log.output)
        outputs = own | outputs
    if log.end.stopped:
        return CommandOutcome(AttemptState.CANCELLED, outputs, None)
    state = AttemptState.FAILED if failure else AttemptState.SUCCEEDED
    return CommandOutcome(state, outputs, failure)


def _failure(log: CommandLog, end: frames.Exit) -> Failure | None:
    if end.timed_out:
        return Failure(FailureCode.TMO, "the command reached the step's timeout and was ended")
    if end.code is None and end.signal is None:
        return Failure(FailureCode.ENV, end.problem or "the command could not be started")
    if end.signal is not None:
        return Failure(FailureCode.EXE, f"the command was ended by signal {end.signal}{_last_words(log)}")
    if end.code:
        return Failure(FailureCode.EXE, f"the command ended with exit code {end.code}{_last_words(log)}")
    return Failure(FailureCode.VAL, end.problem) if end.problem else None


def _last_words(log: CommandLog) -> str:
    lines = _tail(log.stderr).strip().splitlines()
    return f": {lines[-1][:500]}" if lines else ""


def _own_outputs(text: str) -> tuple[dict[str, Any], Failure | None]:
    if not text:
        return {}, None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return {}, Failure(FailureCode.VAL, f"$PILOTHOUSE_OUTPUT does not hold JSON: {error}")
    if not isinstance(value, dict):
        return {}, Failure(FailureCode.VAL, "$PILOTHOUSE_OUTPUT must hold a JSON object")
    if taken := sorted(set(RESERVED) & value.keys()):
        return {}, Failure(FailureCode.VAL, f"$PILOTHOUSE_OUTPUT may not set `{taken[0]}`; use another name")
    return value, None


def _tail(text: str) -> str:
    """The end of a stream as an output holds it: valid text without the last newlines."""
    data = _NO_BYTE.sub("\ufffd", text).encode("utf-8", "surrogateescape")[-frames.TAIL :]
    return data.decode("utf-8", "replace").rstrip("\n")
