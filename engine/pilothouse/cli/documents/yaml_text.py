"""YAML documents from the parser's events, one event at a time, so that every bound holds before memory is spent."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from pilothouse.api.problem import path_of
from pilothouse.cli.documents.document import MAX_DEPTH, MAX_NODES, Document, Place, Refused, check_count
from pilothouse.cli.documents.scalars import ScalarRefused, resolve

# libyaml's parser where PyYAML was built with it: some thirty times faster, the same events.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def yaml_documents(text: str) -> Iterator[Document]:
    """The documents of a YAML text. Raises Refused at the first that cannot be read."""
    count = 0
    try:
        events = yaml.parse(text, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                count += 1
                check_count(count)
                yield _Composer(events, count).document()
    except yaml.YAMLError as error:
        raise _syntax(error, max(count, 1)) from None


def _syntax(error: yaml.YAMLError, document: int) -> Refused:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be parsed"
    where = f" (column {mark.column + 1})" if mark else ""
    return Refused(f"is not valid YAML: {problem}{where}", mark.line + 1 if mark else None, document=document)


@dataclass(slots=True)
class _Open:
    """A collection that is being read. `key` is the key whose value comes next; `height` counts levels below."""

    value: dict[str, Any] | list[Any]
    anchor: str | None
    first_node: int
    key: str | None = None
    height: int = 0


@dataclass(frozen=True, slots=True)
class _Anchored:
    """A value that aliases may repeat, with what it takes of the bounds."""

    value: Any
    nodes: int = 1
    height: int = 0


class _Composer:
    """Reads one document."""

    def __init__(self, events: Iterator[Any], number: int) -> None:
        self._events = events
        self._number = number
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored | None] = {}
        self._lines: dict[Place, int] = {}
        self._nodes = 0
        self._root: Any = None

    def document(self) -> Document:
        for event in self._events:
            if isinstance(event, yaml.DocumentEndEvent):
                break
            if isinstance(event, yaml.CollectionEndEvent):
                self._end()
            else:
                self._begin(event)
        return Document(self._number, self._root, self._lines)

    def _begin(self, event: Any) -> None:
        if getattr(event, "tag", None) is not None:
            raise self._refused(event, f"holds the tag `{event.tag[:80]}`; tags are not supported")
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            self._key(event, top, top.value)
            return
        self._lines.setdefault(self._place(), event.start_mark.line + 1)
        if isinstance(event, yaml.AliasEvent):
            self._alias(event)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        else:
            self._start(event)

    def _key(self, event: Any, top: _Open, mapping: dict[str, Any]) -> None:
        line: int = event.start_mark.line + 1
        if not isinstance(event, yaml.ScalarEvent) or event.anchor is not None:
            raise self._refused(event, "a key must be a text")
        key: str = event.value
        if event.implicit[0]:
            self._refuse_odd_key(event, key)
        place = (*self._place(), key)
        if key in mapping:
            first = self._lines[place]
            raise self._refused(event, f"the key `{key[:80]}` stands twice in one mapping, first in line {first}")
        self._lines[place] = line
        top.key = key
        mapping[key] = None

    def _refuse_odd_key(self, event: Any, key: str) -> None:
        if key == "<<":
            raise self._refused(event, "merge keys (`<<`) are not supported: write the fields out")
        if not isinstance(self._resolved(event), str):
            raise self._refused(event, f"the key `{key}` is not a text: quote it")

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            raise self._refused(event, f"the alias `*{event.anchor[:80]}` has no anchor before it")
        target = self._anchors[event.anchor]
        if target is None:
            raise self._refused(event, f"the alias `*{event.anchor[:80]}` stands inside of what it repeats")
        self._count(event, target.nodes, target.height)
        self._put(target.value, target.height)

    def _scalar(self, event: Any) -> None:
        self._count(event)
        value = self._resolved(event) if event.implicit[0] else event.value
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value)
        self._put(value, 0)

    def _start(self, event: Any) -> None:
        self._count(event)
        value: dict[str, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        self._open.append(_Open(value, event.anchor, self._nodes))

    def _end(self) -> None:
        ended = self._open.pop()
        height = ended.height + 1
        if ended.anchor is not None:
            self._anchors[ended.anchor] = _Anchored(ended.value, self._nodes - ended.first_node + 1, height)
        self._put(ended.value, height)

    def _put(self, value: Any, height: int) -> None:
        if not self._open:
            self._root = value
            return
        top = self._open[-1]
        top.height = max(top.height, height)
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is not None:
            top.value[top.key] = value
            top.key = None

    def _count(self, event: Any, nodes: int = 1, height: int = 0) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise self._refused(event, f"the document holds more than {MAX_NODES:,} values, aliases put in")
        if len(self._open) + height >= MAX_DEPTH:
            raise self._refused(event, f"is nested deeper than {MAX_DEPTH} levels")

    def _resolved(self, event: Any) -> object:
        try:
            return resolve(event.value)
        except ScalarRefused as error:
            raise self._refused(event, str(error)) from None

    def _place(self) -> Place:
        return tuple(
            self._step(open_) for open_ in self._open if open_.key is not None or isinstance(open_.value, list)
        )

    @staticmethod
    def _step(open_: _Open) -> str | int:
        return open_.key if open_.key is not None else len(open_.value)

    def _refused(self, event: Any, message: str) -> Refused:
        return Refused(message, event.start_mark.line + 1, path_of(self._place()), self._number)
