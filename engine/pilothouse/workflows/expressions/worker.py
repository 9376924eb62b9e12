"""The process in which expressions are compiled and evaluated: `python -I -m pilothouse.workflows.expressions.worker`.

The CEL library is C++ code that cannot be interrupted and whose own iteration budget lets a short expression
take gigabytes. So the kernel sets the limits: an address space of MEMORY_LIMIT above what the waiting worker
has (reaching it ends the process with MEMORY_EXIT), and CPU_LIMIT of processor time for a request (reaching
it ends the process by SIGPROF). Whoever started the worker learns the limit from how it ended.

Where /proc is missing (macOS) there is no memory limit; the time limit holds.
"""

import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import (  # type: ignore[import-untyped]
    ext_bindings,
    ext_encoders,
    ext_math,
    ext_optional,
    ext_strings,
)

from pilothouse.workflows.expressions.checked import read_checked
from pilothouse.workflows.expressions.errors import ExpressionError
from pilothouse.workflows.expressions.frames import (
    CPU_LIMIT,
    LENGTH_BYTES,
    MEMORY_EXIT,
    MEMORY_LIMIT,
    RESULT_LIMIT,
    Kind,
)
from pilothouse.workflows.expressions.references import find_references
from pilothouse.workflows.expressions.results import to_json

if TYPE_CHECKING:
    from typing import Any

_CACHED_SOURCE = 64 * 1024
"""Characters of source whose compiled programs a worker keeps."""

_OBJECTS = frozenset({"params", "steps", "run"})


class _Refused(Exception):  # noqa: N818 - it is a reply
    def __init__(self, kind: Kind, message: str, column: int | None = None) -> None:
        self.reply = {"error": {"kind": kind, "message": message, "column": column}}


class _Programs:
    """Compiled programs by source and names, the oldest dropped first."""

    def __init__(self) -> None:
        self._programs: dict[tuple[str, tuple[str, ...]], cel.Expression] = {}
        self._environments: dict[tuple[str, ...], cel.Env] = {}
        self._extensions = [
            ext_strings.ExtStrings(),
            ext_encoders.ExtEncoders(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_bindings.ExtBindings(),
        ]

    def get(self, source: str, names: tuple[str, ...]) -> cel.Expression:
        program = self._programs.get((source, names))
        if program is None:
            program = self._compile(source, names)
            self._programs[source, names] = program
            while sum(len(kept) for kept, _ in self._programs) > _CACHED_SOURCE:
                del self._programs[next(iter(self._programs))]
        return program

    def _compile(self, source: str, names: tuple[str, ...]) -> cel.Expression:
        try:
            return self._environment(names).compile(source)
        except RuntimeError as error:
            raise _Refused(Kind.COMPILE, str(error)) from None

    def _environment(self, names: tuple[str, ...]) -> cel.Env:
        if names not in self._environments:
            anything, objects = cel.Type.DYN, cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
            variables = {name: objects if name in _OBJECTS else anything for name in names}
            self._environments[names] = cel.NewEnv(variables=variables, extensions=self._extensions)
        return self._environments[names]


def _compile(programs: _Programs, request: "dict[str, Any]") -> "dict[str, Any]":
    names = tuple(request["names"])
    program = programs.get(request["source"], names)
    found = find_references(read_checked(program.serialize()), frozenset(names))
    return {
        "references": {"reads": list(found.reads), "tests": list(found.tests), "lone": found.lone_path},
        "type": program.return_type().name().lower(),
    }


def _evaluate(programs: _Programs, request: "dict[str, Any]") -> "dict[str, Any]":
    program = programs.get(request["source"], tuple(request["names"]))
    try:
        result = program.eval(data=request["scope"])
    except RuntimeError as error:
        raise _Refused(Kind.EVALUATE, str(error)) from None
    plain, kind = _plain(result)
    if kind == "ERROR":
        raise _Refused(Kind.EVALUATE, str(plain))
    return {"value": to_json(plain)}


def _plain(result: cel.Value) -> tuple[object, str]:
    try:
        return result.plain_value(), result.type().name()
    except (TypeError, SystemError):
        # So the library says that a value, here or deeper, is an optional one.
        raise _Refused(Kind.PLAIN, "the result holds an optional value; end it with .orValue(...)") from None


_OPERATIONS = {"compile": _compile, "evaluate": _evaluate}


def _handle(programs: _Programs, body: bytes) -> bytes:
    try:
        request = json.loads(body)
        reply = _encode(_OPERATIONS[request["op"]](programs, request))
        if request["op"] == "evaluate" and len(reply) > RESULT_LIMIT:
            raise _Refused(Kind.LIMIT, f"the result takes more than {RESULT_LIMIT:,} bytes as JSON")
    except _Refused as refused:
        return _encode(refused.reply)
    except ExpressionError as error:
        return _encode(_Refused(Kind.PLAIN, error.message, error.column).reply)
    except RecursionError:
        return _encode(_Refused(Kind.LIMIT, "a value is nested too deeply").reply)
    except MemoryError:
        raise
    except Exception as error:
        # The library raises what it likes, and a worker that dies of it would only be asked again.
        return _encode(_Refused(Kind.PLAIN, f"the expression fails: {error!r:.200}").reply)
    return reply


def _encode(reply: "dict[str, Any]") -> bytes:
    return json.dumps(reply, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _limit_memory() -> None:
    pages = Path("/proc/self/statm")
    if pages.exists():
        allowed = int(pages.read_text().split()[0]) * resource.getpagesize() + MEMORY_LIMIT
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _serve(requests: BinaryIO, replies: BinaryIO) -> None:
    programs = _Programs()
    programs.get("1", ("params",)).eval(data={"params": {}})  # loads what the library loads late
    _limit_memory()
    _send(replies, b"{}")
    while length := requests.read(LENGTH_BYTES):
        body = requests.read(int.from_bytes(length, "big"))
        signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT)
        reply = _handle(programs, body)
        signal.setitimer(signal.ITIMER_PROF, 0)
        _send(replies, reply)


def _send(replies: BinaryIO, body: bytes) -> None:
    replies.write(len(body).to_bytes(LENGTH_BYTES, "big") + body)
    replies.flush()


def main() -> None:
    os.environ.clear()
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    try:
        _serve(sys.stdin.buffer, sys.stdout.buffer)
    except MemoryError:
        os._exit(MEMORY_EXIT)


if __name__ == "__main__":
    main()
