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

CODE_TIMEOUT = 30.0
"""Seconds that a piece of code may run where the step sets no timeout."""

PROGRAMS = {"python": ("python3", "main.py"), "bash": ("bash", "main.sh")}
"""Of each language, what runs the code and the file that holds it."""


class RunCommandKind(StepKind[RunCommand]):
    """The argument vector is never split and no shell sees it."""

    key = "runCommand"

    async def begin(self, step: Step, action: RunCommand, scope: Scope) -> Beginning:
        body = await self.rendered(action, scope)
        return CommandWork(
            argv=_arguments(_list(body, "command") + _list(body, "args")),
            env=_env(body),
            files=_files(body),
            timeout=seconds(step.timeout) if step.timeout else None,
            image=action.image,
        )


class ExecuteCodeKind(StepKind[ExecuteCode]):
    """The code is a file beside its arguments; it runs without a network."""

    key = "executeCode"
    opaque: ClassVar = frozenset({"code"})

    async def begin(self, step: Step, action: ExecuteCode, scope: Scope) -> Beginning:
        body = await self.rendered(action, scope)
        program, path = PROGRAMS[action.language]
        return CommandWork(
            argv=_arguments([program, path, *_list(body, "args")]),
            env=_env(body),
            files={**_files(body), path: action.code},
            timeout=seconds(step.timeout) if step.timeout else CODE_TIMEOUT,
            sealed=True,
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
    if len(text.encode("utf-8", "surrogatepass")) > ARGUMENT_LIMIT:
        raise Failed(FailureCode.INP, f"{what} takes more than {ARGUMENT_LIMIT:,} bytes; pass it as a file")
    return text
