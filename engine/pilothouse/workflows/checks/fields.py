"""The defects of one part of a Workflow or an Agent that its own fields show, beyond their types."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pilothouse.api.actions import Conditional, ExecuteCode, FileMount, RunCommand
from pilothouse.api.base import ApiModel
from pilothouse.api.fields import seconds
from pilothouse.api.governance import Budget
from pilothouse.api.languagemodel import ScriptedError
from pilothouse.api.meta import EnvVar
from pilothouse.api.problem import Problem
from pilothouse.api.workflow import Retry, Step, WorkflowSpec
from pilothouse.records.failures import FailureCode
from pilothouse.workflows.steps import KINDS
from pilothouse.workflows.steps.commands import PROGRAMS

MODEL_FAILURES = frozenset(FailureCode) - {FailureCode.EXE, FailureCode.VAL, FailureCode.REV}
"""The codes that a call of a model can end with."""

MAX_DURATION = 10 * 365 * 86_400
"""Seconds: ten years. What is longer is a mistake, and no clock holds it."""

RESERVED_ENV = "PILOTHOUSE_"
"""Environment variables that begin so are ours to set."""


def defects(part: ApiModel, path: str) -> Iterator[Problem]:
    """What is wrong with the part at `path`, as `spec.steps[2].retry`; nothing of the parts inside of it."""
    find = _FINDERS.get(type(part))
    return find(part, path) if find is not None else iter(())


def _workflow(spec: WorkflowSpec, path: str) -> Iterator[Problem]:
    yield from _time(spec.deadline, f"{path}.deadline")


def _step(step: Step, path: str) -> Iterator[Problem]:
    yield from _time(step.timeout, f"{path}.timeout")
    yield from _time(step.pending_timeout, f"{path}.pendingTimeout")
    key, _ = step.action
    if key in KINDS and KINDS[key].light:
        for name in ("retry", "timeout", "idempotent"):
            if getattr(step, name):
                yield Problem(f"{path}.{name}", f"has no effect: `{key}` is evaluated at once and has no attempts")


def _budget(budget: Budget, path: str) -> Iterator[Problem]:
    yield from _time(budget.duration, f"{path}.duration")


def _time(duration: str | None, path: str) -> Iterator[Problem]:
    if duration is not None and seconds(duration) == 0:
        yield Problem(path, "must be longer than no time at all")
    yield from _sane(duration, path)


def _sane(duration: str | None, path: str) -> Iterator[Problem]:
    if duration is not None and seconds(duration) > MAX_DURATION:
        yield Problem(path, f"must be at most ten years; found {duration}")


def _retry(retry: Retry, path: str) -> Iterator[Problem]:
    for index, code in enumerate(retry.codes or ()):
        if code not in set(FailureCode):
            known = ", ".join(sorted(FailureCode))
            yield Problem(f"{path}.codes[{index}]", f"there is no failure code `{code}`; there are: {known}")
    yield from _sane(retry.delay, f"{path}.delay")
    yield from _sane(retry.max_delay, f"{path}.maxDelay")
    if seconds(retry.delay) > seconds(retry.max_delay):
        yield Problem(f"{path}.delay", f"must be at most maxDelay, which is {retry.max_delay}; found {retry.delay}")


def _conditional(conditional: Conditional, path: str) -> Iterator[Problem]:
    if not conditional.then and not conditional.else_:
        yield Problem(path, "chooses nothing: name steps under then, else or both")


def _command(command: RunCommand, path: str) -> Iterator[Problem]:
    yield from _files(command.files, {}, f"{path}.files")


def _code(code: ExecuteCode, path: str) -> Iterator[Problem]:
    _, own = PROGRAMS[code.language]
    yield from _files(code.files, {PurePosixPath(own): "the code itself"}, f"{path}.files")


def _files(files: Sequence[FileMount], taken: Mapping[PurePosixPath, str], path: str) -> Iterator[Problem]:
    known = dict(taken)
    for index, file in enumerate(files):
        where, place = f"{path}[{index}].path", PurePosixPath(file.path)
        if ".." in place.parts:
            yield Problem(where, "must stay in the step's directory: leave out `..`")
        elif not place.parts or file.path.endswith("/"):
            yield Problem(where, f"must name a file, not a directory; found {file.path}")
        else:
            yield from _clash(place, known, where)
            known.setdefault(place, f"[{index}]")


def _clash(place: PurePosixPath, known: Mapping[PurePosixPath, str], where: str) -> Iterator[Problem]:
    for other, what in known.items():
        if place == other:
            yield Problem(where, f"is the place of {what} already")
        elif place in other.parents or other in place.parents:
            yield Problem(where, f"cannot be both a file and a directory; see {what}")


def _env(variable: EnvVar, path: str) -> Iterator[Problem]:
    if variable.name.startswith(RESERVED_ENV):
        yield Problem(f"{path}.name", f"variables that begin with {RESERVED_ENV} are set by Pilothouse; choose another")


def _scripted_error(error: ScriptedError, path: str) -> Iterator[Problem]:
    if error.code not in MODEL_FAILURES:
        known = ", ".join(sorted(MODEL_FAILURES))
        yield Problem(f"{path}.code", f"must be a failure that a model call can end with: {known}; found {error.code}")


_FINDERS: Mapping[type[ApiModel], Callable[[Any, str], Iterator[Problem]]] = {
    WorkflowSpec: _workflow,
    Step: _step,
    Retry: _retry,
    Budget: _budget,
    Conditional: _conditional,
    RunCommand: _command,
    ExecuteCode: _code,
    EnvVar: _env,
    ScriptedError: _scripted_error,
}
