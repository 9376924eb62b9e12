"""`runCommand` and `executeCode`: a program in a place of its own."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from pilothouse.api.actions import ExecuteCode, RunCommand
from pilothouse.api.fields import seconds
from pilothouse.api.workflow import Step
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.workflows.expressions.template import as_text
from pilothouse.workflows.scope import Scope
from pilothouse.workflows.steps.kind import Beginning, StepKind
from pilothouse.workflows.work import CommandWork, Text, ValueSource

ARGUMENT_LIMIT = 128 * 1024 - 1
"""Bytes that Linux takes in one argument or environment variable."""

TOTAL_LIMIT = 1024 * 1024
"""Bytes that all arguments and environment variables may take together; Linux takes a quarter of the stack's limit."""

CODE_TIMEOUT = 30.0
"""Seconds that a piece of code may run where the step sets no timeout."""

PROGRAMS = {"python": ("python3", "main.py"), "bash": ("bash", "main.sh")}
"""Of each language, what runs the code and the file that holds it."""


class RunCommandKind(StepKind[RunCommand]):
    """The argument vector is never split and no shell sees it."""

    key = "runCommand"

    async def begin(self, step: Step, action: RunCommand, scope: Scope) -> Beginning:
        body = await self.rendered(action, scope)
        argv, env = _together(_arguments(_list(body, "command") + _list(body, "args")), _env(body))
        return CommandWork(
            argv=argv,
            env=env,
            files=_files(body),
            timeout=seconds(step.timeout) if step.timeout else None,
            image=as_text(body["image"]) if "image" in body else None,
        )


class ExecuteCodeKind(StepKind[ExecuteCode]):
    """The code is a file beside its arguments; it runs without a network."""

    key = "executeCode"
    opaque: ClassVar = frozenset({"code"})

    async def begin(self, step: Step, action: ExecuteCode, scope: Scope) -> Beginning:
        body = await self.rendered(action, scope)
        program, path = PROGRAMS[action.language]
        argv, env = _together(_arguments([program, path, *_list(body, "args")]), _env(body))
        return CommandWork(
            argv=argv,
            env=env,
            files={**_files(body), path: action.code},
            timeout=seconds(step.timeout) if step.timeout else CODE_TIMEOUT,
            confined=True,
        )


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    return list(body.get(name, []))


def _arguments(values: Iterable[Any]) -> list[str]:
    return [_checked(f"argument {index}", as_text(value)) for index, value in enumerate(values)]


def _env(body: Mapping[str, Any]) -> dict[str, Text]:
    entries = {entry["name"]: _source(entry, "value") for entry in _list(body, "env")}
    return {
        name: _checked(f"environment variable {name}", value) if isinstance(value, str) else value
        for name, value in entries.items()
    }


def _together(argv: list[str], env: dict[str, Text]) -> tuple[list[str], dict[str, Text]]:
    """Both, if a process can be given them."""
    texts = (*argv, *env, *(value for value in env.values() if isinstance(value, str)))
    total = sum(len(text.encode()) for text in texts)
    if total > TOTAL_LIMIT:
        text = f"the arguments and the environment take {total:,} bytes, and at most {TOTAL_LIMIT:,} are allowed"
        raise Failed(FailureCode.INP, f"{text}; pass large values as files")
    return argv, env


def _files(body: Mapping[str, Any]) -> dict[str, Text]:
    return {entry["path"]: _source(entry, "content") for entry in _list(body, "files")}


def _source(entry: Mapping[str, Any], literal: str) -> Text:
    if literal in entry:
        return as_text(entry[literal])
    ((kind, ref),) = entry["valueFrom"].items()
    return ValueSource("Secret" if kind == "secretKeyRef" else "ConfigMap", ref["name"], ref["key"])


def _checked(what: str, text: str) -> str:
    if "\0" in text:
        raise Failed(FailureCode.INP, f"{what} holds a NUL character; pass such a value as a file")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise Failed(FailureCode.INP, f"{what} holds a lone surrogate; pass such a value as a file") from None
    if size > ARGUMENT_LIMIT:
        raise Failed(FailureCode.INP, f"{what} takes more than {ARGUMENT_LIMIT:,} bytes; pass it as a file")
    return text
