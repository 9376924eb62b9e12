"""A session as a file: JSON Lines, version 3 of the agent harness's format.

The first line is the header, every further one an entry: `type`, `id`, `parentId`, `timestamp`, and the fields of its
type. What stands in a file is kept to the last field, known or not, and written as it was read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, Never

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from pilothouse.agents.session.entries import LeafBody, read_body
from pilothouse.agents.session.errors import SessionError
from pilothouse.agents.session.times import moment
from pilothouse.records.values import ValueRefused, encode

_OWN = ("type", "id", "parentId", "timestamp")


class Header(BaseModel):
    """The first line. `timestamp`: when the session began. `cwd`: where its agent worked."""

    model_config = ConfigDict(
        frozen=True, extra="allow", alias_generator=to_camel, validate_by_name=True, validate_by_alias=True
    )

    type: Literal["session"] = "session"
    version: Literal[3] = 3
    id: Annotated[str, Field(min_length=1)]
    timestamp: str
    cwd: str
    parent_session: Annotated[str | None, Field(exclude_if=lambda value: value is None)] = None


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One entry of a file. Ids are any text there; a parent stands before its children."""

    id: str
    parent: str | None
    timestamp: str
    type: str
    fields: Mapping[str, Any]

    def to_wire(self) -> dict[str, Any]:
        own = {"type": self.type, "id": self.id, "parentId": self.parent, "timestamp": self.timestamp}
        return {**own, **self.fields}


@dataclass(frozen=True, slots=True)
class SessionFile:
    """A session outside of any store. `warnings` say what of it was left out when it was read."""

    header: Header
    entries: tuple[FileEntry, ...]
    warnings: tuple[str, ...] = field(default=(), compare=False)


def write_jsonl(file: SessionFile) -> bytes:
    """The file, in ASCII, each line ended."""
    header = file.header.model_dump(mode="json", by_alias=True)
    lines = [header, *(entry.to_wire() for entry in file.entries)]
    return "".join(encode(line) + "\n" for line in lines).encode()


def read_jsonl(data: bytes) -> SessionFile:
    """The session in the file.

    Raises SessionError `invalid_session` for a header that is none of this version, and `invalid_entry`, with the
    number of the line, for any other line that is no entry. Only a last line without its end, as a crash or a full
    disk leaves it, is left out with a warning.
    """
    lines = data.split(b"\n")
    torn = lines.pop()
    header = _header(lines[0] if lines else torn)
    reader = _Reader()
    for number, line in enumerate(lines[1:], 2):
        reader.read(number, line)
    if lines and torn.strip():
        reader.read_torn(len(lines) + 1, torn)
    return SessionFile(header, tuple(reader.entries.values()), tuple(reader.warnings))


class _Reader:
    def __init__(self) -> None:
        self.entries: dict[str, FileEntry] = {}
        self.warnings: list[str] = []

    def read(self, number: int, line: bytes) -> None:
        if not line.strip():
            return
        try:
            entry = _entry(_parsed(line))
            self._check_place(entry)
        except ValueError as error:
            raise SessionError("invalid_entry", f"line {number}: {error}") from None
        self.entries[entry.id] = entry

    def read_torn(self, number: int, line: bytes) -> None:
        """The last line, which has no end: it is whole, or it was cut off in the middle of its JSON."""
        try:
            _parsed(line)
        except ValueError:
            self.warnings.append(f"line {number} is cut off and was left out: {len(line):,} bytes without a line end")
        else:
            self.read(number, line)

    def _check_place(self, entry: FileEntry) -> None:
        if entry.id in self.entries:
            raise ValueError(f"id: there is an entry {entry.id!r} already")
        self._check_there("parentId", entry.parent)
        if entry.type == LeafBody.type:
            self._check_there("targetId", entry.fields["targetId"])

    def _check_there(self, name: str, id: str | None) -> None:
        if id is None:
            return
        if id not in self.entries:
            raise ValueError(f"{name}: no entry before this one has the id {id!r}")
        if self.entries[id].type == LeafBody.type:
            raise ValueError(f"{name}: nothing hangs below {id!r}, which only moved the leaf")


def _header(line: bytes) -> Header:
    try:
        return Header.model_validate(_parsed(line), by_alias=True, by_name=False)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "header"
        raise SessionError("invalid_session", f"line 1 is no header of a session: {where}: {first['msg']}") from None
    except ValueError as error:
        raise SessionError("invalid_session", f"line 1 is no header of a session: {error}") from None


def _entry(line: Mapping[str, Any]) -> FileEntry:
    kind, id, parent, timestamp = (line.get(name) for name in _OWN)
    for name, value in (("type", kind), ("id", id), ("timestamp", timestamp)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name}: must be a text that is not empty")
    if "parentId" not in line or not (parent is None or isinstance(parent, str)):
        raise ValueError("parentId: must be an id, or null where nothing is before the entry")
    try:
        moment(str(timestamp))
    except ValueError:
        raise ValueError(f"timestamp: {str(timestamp)[:40]!r} is no time in ISO 8601") from None
    fields = {name: value for name, value in line.items() if name not in _OWN}
    try:
        read_body(str(kind), fields)
    except SessionError as error:
        raise ValueError(str(error)) from None
    return FileEntry(str(id), parent, str(timestamp), str(kind), fields)


def _parsed(line: bytes) -> dict[str, Any]:
    """The JSON object of a line, which a store can hold. Raises ValueError that says what is wrong."""
    try:
        value = json.loads(line.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} at character {error.pos + 1}") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    _check_storable(value)
    return value


def _check_storable(value: Mapping[str, Any]) -> None:
    try:
        encode(value)
    except ValueRefused as error:
        raise ValueError(str(error)) from None


def _no_constant(name: str) -> Never:
    raise ValueError(f"it holds {name}, which JSON does not have")
