"""The syntax tree of a checked CEL expression, read from its serialized form.

The library hands out the tree only as a serialized `google.protobuf.Any` that wraps a `cel.expr.CheckedExpr`.
The field numbers below are those of the CEL specification's `checked.proto` and `syntax.proto`. Macros are
expanded in it: `has(a.b)` is a Select that only tests, `all`, `map`, `cel.bind` and the like are Comprehensions.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

Wire: TypeAlias = int | bytes


class Name(NamedTuple):
    id: int
    name: str


class Select(NamedTuple):
    id: int
    operand: "Node"
    field: str
    only_tests: bool


class Call(NamedTuple):
    """A call; the receiver of a method is its first argument."""

    id: int
    function: str
    arguments: "tuple[Node, ...]"


class Literal(NamedTuple):
    """A constant; None for those that cannot be a step of a path (only text and integers can)."""

    id: int
    value: str | int | None


class Collection(NamedTuple):
    """A list or a map: its elements, keys and values."""

    id: int
    items: "tuple[Node, ...]"


class Comprehension(NamedTuple):
    """A loop over `range`. The iteration variables are known in `body`, the accumulator there and in `result`."""

    id: int
    variables: frozenset[str]
    accumulator: str
    outside: "tuple[Node, ...]"
    body: "tuple[Node, ...]"
    result: "Node"


Node: TypeAlias = Name | Select | Call | Literal | Collection | Comprehension


class Checked(NamedTuple):
    """The tree and, by node id, the offset of each node in the source, in characters from 0."""

    root: Node
    positions: dict[int, int]


def read_checked(serialized: bytes) -> Checked:
    """Decode what `Expression.serialize()` returns."""
    checked = _Message(_Message(serialized).data(2))
    source_info = _Message(checked.data(5))
    entries = [_Message(entry) for entry in source_info.parts(4)]
    return Checked(_node(checked.data(4)), {entry.number(1): entry.number(2) for entry in entries})


def _node(encoded: bytes) -> Node:
    message = _Message(encoded)
    for number, build in _BUILDERS.items():
        if number in message.fields:
            return build(message.number(2), _Message(message.data(number)))
    raise ValueError("an expression of an unknown kind")


def _literal(node_id: int, message: "_Message") -> Literal:
    if 6 in message.fields:
        return Literal(node_id, message.text(6))
    return Literal(node_id, _signed(message.number(3)) if 3 in message.fields else None)


def _name(node_id: int, message: "_Message") -> Name:
    return Name(node_id, message.text(1))


def _select(node_id: int, message: "_Message") -> Select:
    return Select(node_id, _node(message.data(1)), message.text(2), bool(message.number(3)))


def _call(node_id: int, message: "_Message") -> Call:
    return Call(node_id, message.text(2), (*message.nodes(1), *message.nodes(3)))


def _list(node_id: int, message: "_Message") -> Collection:
    return Collection(node_id, message.nodes(1))


def _struct(node_id: int, message: "_Message") -> Collection:
    entries = [_Message(entry) for entry in message.parts(2)]
    return Collection(node_id, tuple(node for entry in entries for node in (*entry.nodes(3), *entry.nodes(4))))


def _comprehension(node_id: int, message: "_Message") -> Comprehension:
    return Comprehension(
        node_id,
        frozenset({message.text(1), message.text(8)}),
        message.text(3),
        (*message.nodes(2), *message.nodes(4)),
        (*message.nodes(5), *message.nodes(6)),
        _node(message.data(7)),
    )


_BUILDERS: "dict[int, Callable[[int, _Message], Node]]" = {
    3: _literal,
    4: _name,
    5: _select,
    6: _call,
    7: _list,
    8: _struct,
    9: _comprehension,
}


class _Message:
    """One protobuf message, as its fields by number. Absent scalars read as zero, as protobuf says."""

    def __init__(self, encoded: bytes) -> None:
        self.fields: dict[int, list[Wire]] = {}
        for number, value in _fields(encoded):
            self.fields.setdefault(number, []).append(value)

    def parts(self, number: int) -> list[bytes]:
        return [value for value in self.fields.get(number, []) if isinstance(value, bytes)]

    def data(self, number: int) -> bytes:
        found = self.parts(number)
        return found[-1] if found else b""

    def number(self, number: int) -> int:
        value = self.fields.get(number, [0])[-1]
        return value if isinstance(value, int) else 0

    def text(self, number: int) -> str:
        return self.data(number).decode()

    def nodes(self, number: int) -> tuple[Node, ...]:
        return tuple(_node(encoded) for encoded in self.parts(number))


def _fields(encoded: bytes) -> Iterator[tuple[int, Wire]]:
    at = 0
    while at < len(encoded):
        key, at = _varint(encoded, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _varint(encoded, at)
            yield number, value
        else:
            size, at = _varint(encoded, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            yield number, encoded[at : at + size]
            at += size


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = encoded[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
