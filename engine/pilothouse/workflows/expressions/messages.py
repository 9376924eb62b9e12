"""What the CEL library says, put into words for the user of a workflow."""

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from pilothouse.records.values import JSON
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.references import Path


def compile_error(said: str, source: str, names: Collection[str]) -> ExpressionError:
    """The first error of a failed compilation, with its place."""
    if source.startswith("${{"):
        return ExpressionError("this is an expression already; write it without the ${{ }}", 1)
    found = _PLACED.search(said)
    if found is None or int(found["line"]) < 1:
        return _unplaced(said)
    line = int(found["line"])
    text = [*source.split("\n"), ""][line - 1]
    worded = _word_compile_error(_Place(found["message"], text, int(found["column"])), names)
    return _at_line(worded, line, source)


def reference_error(message: str, offset: int | None, source: str) -> ExpressionError:
    """An error about the place at an offset of the source, in characters from 0."""
    if offset is None:
        return ExpressionError(message)
    before = source[:offset]
    column = offset - before.rfind("\n")
    return _at_line(_Worded(message, column), before.count("\n") + 1, source)


def evaluation_error(said: str, scope: Mapping[str, JSON], paths: Iterable[Path]) -> ExpressionError | ExpressionLimit:
    """The error of a failed evaluation; `paths` are those that the expression reads of `scope`."""
    if "Iteration budget exceeded" in said:
        return ExpressionLimit("the expression makes 10,000 or more steps over lists and maps")
    message = _STATUS.sub("", said).removesuffix("]").strip()
    for pattern, word in _EVALUATION:
        if found := pattern.search(message):
            return ExpressionError(word(found, _Reads(scope, sorted(paths, key=str))))
    return ExpressionError(message)


class _Place(NamedTuple):
    message: str
    line: str
    column: int


class _Worded(NamedTuple):
    message: str
    column: int


_PLACED = re.compile(r"ERROR: <input>:(?P<line>-?\d+):(?P<column>-?\d+): (?P<message>.*?)(?:\n \||\n|$| \[[A-Z_]+\])")
_STATUS = re.compile(r"^[A-Z_]+: | \[[A-Z_]+\]$")
_UNDECLARED = re.compile(r"undeclared reference to '([^']*)'")
_OVERLOAD = re.compile(r"found no matching overload for '([^']*)' applied to '\((.*)\)'")
_OPERATOR = re.compile(r"^(?:_([^\w\s]+|in)_|([!-])_)$")
_NUMBERS = {"int", "double", "uint", "int64", "uint64"}


def _at_line(worded: _Worded, line: int, source: str) -> ExpressionError:
    prefix = f"line {line}: " if "\n" in source.strip() else ""
    return ExpressionError(prefix + worded.message, worded.column)


def _unplaced(said: str) -> ExpressionError:
    if "recursion" in said:
        return ExpressionError("the expression is nested more than 32 levels deep; each + in a chain counts as one")
    return ExpressionError(_STATUS.sub("", said))


def _word_compile_error(place: _Place, names: Collection[str]) -> _Worded:
    if found := _UNDECLARED.search(place.message):
        return _undeclared(found[1], place, names)
    if found := _OVERLOAD.search(place.message):
        return _Worded(_no_overload(found[1], found[2]), place.column)
    return _Worded(_syntax(place.message), place.column)


def _syntax(message: str) -> str:
    short = re.sub(r" expecting .*", "", message.removeprefix("Syntax error: "))
    short = re.sub(r"^(mismatched|extraneous|no viable alternative at) input", "unexpected", short)
    return "syntax error: " + short.replace("'<EOF>'", "end of the expression")


def _undeclared(name: str, place: _Place, names: Collection[str]) -> _Worded:
    if place.line[place.column - 1 : place.column] == "(":
        return _Worded(f'unknown function "{name}"', place.column)
    first = name.lstrip(".").partition(".")[0]
    # The library points at the last dot of a dotted name.
    start = place.line.rfind(first, 0, place.column - 1 + len(first))
    known = f"; known names are {', '.join(sorted(names))}" if names else "; no names are known here"
    close = difflib.get_close_matches(first, names, n=1)
    hint = f'; did you mean "{close[0]}"?' if close else ""
    return _Worded(f'unknown name "{first}"{known}{hint}', start + 1 if start >= 0 else place.column)


def _no_overload(function: str, types: str) -> str:
    if function == "_?_:_":
        return f"both outcomes of ? : must have one type and the condition must be a bool; here ({types})"
    hint = "; convert one side with int() or double()" if _mixes_numbers(types) else ""
    operator = _OPERATOR.match(function)
    if operator:
        return f"no operator {operator[1] or operator[2]} for ({types}){hint}"
    if function == "_[_]":
        return f"no element [ ] for ({types})"
    return f"no function {function} for ({types}){hint}"


def _mixes_numbers(types: str) -> bool:
    found = {kind.strip() for kind in types.split(",")}
    return len(found) > 1 and found <= _NUMBERS


class _Reads(NamedTuple):
    scope: Mapping[str, JSON]
    paths: list[Path]


def _no_key(found: re.Match[str], reads: _Reads) -> str:
    key = found[1].strip('"')
    for path in reads.paths:
        at, value = _follow(reads.scope, path)
        if at < len(path) and path[at] == key and isinstance(value, dict):
            return _absent(path[: at + 1])
    return f"no such key: {key}; guard it with has(...)"


def _absent(path: Path) -> str:
    place, key = format_path(path), path[-1]
    guard = f"has({place})" if place.endswith(f".{key}") else f"{key!r} in {format_path(path[:-1])}"
    return f"no such key: {place}; guard it with {guard}"


def _no_field(_found: re.Match[str], reads: _Reads) -> str:
    for path in reads.paths:
        at, value = _follow(reads.scope, path)
        if at < len(path) and not isinstance(value, dict | list):
            return f"{format_path(path[:at])} is {_kind(value)}, so it has no `{path[at]}`"
    return "a field is read of a value that is not an object"


def _no_index(found: re.Match[str], _reads: _Reads) -> str:
    return f"index {found[1]} is out of range: the list has {found[2]} items"


def _no_runtime_overload(found: re.Match[str], _reads: _Reads) -> str:
    function, types = found[1], found[2]
    if types is not None:
        return _no_overload(function, types)
    if function == "<iter_range>":
        return "all, exists, map and filter need a list or a map"
    what = "the condition of ? :" if "condition" in function else "a side of " + function.strip("_")
    return f"{what} is not a bool"


_EVALUATION: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], _Reads], str]], ...] = (
    (re.compile(r"^Key not found in map : (.*)$", re.DOTALL), _no_key),
    (re.compile(r"^Applying SELECT to non-message type"), _no_field),
    (re.compile(r"^Index error: index=(-?\d+) size=(\d+)"), _no_index),
    (re.compile(r"^No matching overloads found : ([^(\s]+)\s*(?:\((.*)\))?"), _no_runtime_overload),
)


def format_path(path: Path) -> str:
    """A path as users write it in CEL: `steps['a-b'].outputs.files[0]`."""
    return "".join(_segment(key) for key in path).removeprefix(".")


def _segment(key: str | int) -> str:
    if isinstance(key, str) and re.fullmatch(r"[A-Za-z_]\w*", key, re.ASCII):
        return f".{key}"
    return f"[{key!r}]"


def _follow(scope: Mapping[str, JSON], path: Path) -> tuple[int, JSON]:
    """How many keys of the path lead somewhere, and to which value."""
    value: JSON = dict(scope)
    for at, key in enumerate(path):
        if isinstance(value, dict) and key in value:
            value = value[str(key)]
        elif isinstance(value, list) and isinstance(key, int) and 0 <= key < len(value):
            value = value[key]
        else:
            return at, value
    return len(path), value


def _kind(value: JSON) -> str:
    if value is None:
        return "null"
    return {bool: "a bool", str: "a string"}.get(type(value), "a number")
