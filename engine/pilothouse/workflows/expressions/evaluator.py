"""Compiling and evaluating expressions, safely and without blocking.

Beyond the CEL standard, expressions have CEL's extension libraries strings (`split`, `join`, `replace`,
`format`, `lowerAscii`, …), encoders (`base64.encode`), math (`math.greatest`, …), optional values
(`a.?b.orValue(c)`) and bindings (`cel.bind`). A chain or a nesting of more than 32 levels and loops of 10,000
steps or more are refused by the library itself.
"""

import json
from collections import OrderedDict
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Self

from pilothouse.records.values import JSON
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.frames import Kind
from pilothouse.workflows.expressions.messages import compile_error, evaluation_error, reference_error
from pilothouse.workflows.expressions.processes import WorkerPool
from pilothouse.workflows.expressions.references import Path, References
from pilothouse.workflows.expressions.scope import encode_scope, prune

SOURCE_LIMIT = 8 * 1024
"""Bytes of an expression in UTF-8."""

_CACHED = 1024


class Compiled(NamedTuple):
    """A valid expression: what it reads, and its CEL type, such as `bool`, `dyn`, `list<int>`.

    `dyn` is a type that only the values will tell.
    """

    references: References
    result_type: str


class Evaluator:
    """Compiles and evaluates CEL in worker processes with limits of memory and time.

    An asynchronous context manager; leaving it ends the processes. Any number of calls may wait at once,
    `workers` of them are served. A call may be cancelled at any time.

    Both calls raise ExpressionError if the expression or a value is wrong, ExpressionLimit if a limit was
    reached: 256 MiB of memory, 200 ms of processor time, 256 KiB of values read, 64 KiB of result.
    """

    def __init__(self, workers: int = 2) -> None:
        self._pool = WorkerPool(workers)
        self._compiled: OrderedDict[tuple[str, frozenset[str]], Compiled] = OrderedDict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._pool.close()

    async def compile(self, source: str, names: Collection[str]) -> Compiled:
        """Check an expression in which `names` are known: `params`, `steps`, `run`, `item` or what `as` says."""
        key = (source, frozenset(names))
        if key in self._compiled:
            self._compiled.move_to_end(key)
            return self._compiled[key]
        _check_source(source)
        request = {"op": "compile", "source": source, "names": sorted(names)}
        reply = await self._pool.ask(json.dumps(request).encode())
        if "error" in reply:
            raise _error(reply["error"], source, {name: None for name in names}, ())
        self._compiled[key] = Compiled(_references(reply["references"]), reply["type"])
        if len(self._compiled) > _CACHED:
            self._compiled.popitem(last=False)
        return self._compiled[key]

    async def evaluate(self, source: str, scope: Mapping[str, JSON]) -> JSON:
        """The value of an expression in which the names in `scope` have the values there.

        Only what the expression reads is looked at, and counts. `steps` has `state` and `outputs` for each
        step, `outputs` being empty where there are none: `has()` asks for the last key of a path only.
        """
        references = (await self.compile(source, scope.keys())).references
        paths = references.reads | references.tests
        read = prune(scope, paths)
        request = {"op": "evaluate", "source": source, "names": sorted(scope)}
        body = f'{json.dumps(request)[:-1]}, "scope": {encode_scope(read)}}}'
        reply = await self._pool.ask(body.encode())
        if "error" in reply:
            raise _error(reply["error"], source, scope, paths)
        value: JSON = reply["value"]
        return value


def _check_source(source: str) -> None:
    try:
        size = len(source.encode())
    except UnicodeEncodeError as error:
        raise ExpressionError("the expression holds a lone surrogate", error.start + 1) from None
    if size > SOURCE_LIMIT:
        raise ExpressionError(f"the expression has {size:,} bytes; at most {SOURCE_LIMIT:,} are allowed")


def _references(body: dict[str, Any]) -> References:
    reads, tests = (frozenset(map(tuple, body[kind])) for kind in ("reads", "tests"))
    return References(reads, tests, None if body["lone"] is None else tuple(body["lone"]))


def _error(
    body: dict[str, Any], source: str, scope: Mapping[str, JSON], paths: Collection[Path]
) -> ExpressionError | ExpressionLimit:
    message = body["message"]
    match body["kind"]:
        case Kind.COMPILE:
            return compile_error(message, source, scope.keys())
        case Kind.EVALUATE:
            return evaluation_error(message, scope, paths)
        case Kind.LIMIT:
            return ExpressionLimit(message)
    return reference_error(message, body["column"], source)
