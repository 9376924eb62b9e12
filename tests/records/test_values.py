"""What `encode` takes, what it refuses, and how it names the place."""

import enum
import json
import math
from typing import Any

import pytest

from pilothouse.records.values import DEPTH_LIMIT, VALUE_LIMIT, ValueRefused, decode, encode


class Colour(enum.StrEnum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


def nested(levels: int, innermost: Any) -> Any:
    value = innermost
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def cycle() -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


ACCEPTED: dict[str, tuple[Any, str]] = {
    "a scalar": (None, "null"),
    "empty containers": ([{}, [], ()], "[{},[],[]]"),
    "a tuple as a list": ((1, (2,)), "[1,[2]]"),
    "booleans, which are no numbers": ([True, 1, 1.0], "[true,1,1.0]"),
    "the ends of 64 bits": ([-(2**63), 2**63 - 1], "[-9223372036854775808,9223372036854775807]"),
    "NUL and a lone surrogate": ({"\0": "\ud800"}, '{"\\u0000":"\\ud800"}'),
    "characters beyond ASCII": ("é𝒳", '"\\u00e9\\ud835\\udcb3"'),
    "members of enums": ([Colour.RED, {"level": Level.HIGH}], '["red",{"level":3}]'),
}


@pytest.mark.parametrize(("value", "text"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_a_value_becomes_compact_ascii_json(value: Any, text: str) -> None:
    assert encode(value) == text


REFUSED: dict[str, tuple[Any, str]] = {
    "not a number at the top": (math.nan, "the value is nan; JSON has no such number"),
    "an infinity deep inside": ({"a": [1, {"b": (2, -math.inf)}]}, "`a[1].b[1]` is -inf; JSON has no such number"),
    "an integer beyond 64 bits": ([0, 2**63], "`[1]` is an integer beyond 64 bits; send it as a string"),
    "an integer below 64 bits": ({"n": -(2**63) - 1}, "`n` is an integer beyond 64 bits; send it as a string"),
    "a key that is no string": ({"a": {1: "x"}}, "`a` has the key 1; keys must be strings"),
    "a key that is null": ([{None: 1}], "`[0]` has the key None; keys must be strings"),
    "bytes": ({"a": [b"x"]}, "`a[0]` is a bytes; only JSON values are stored"),
    "a set": ({1}, "the value is a set; only JSON values are stored"),
    "one that holds itself": (cycle(), f"is nested more than {DEPTH_LIMIT} levels deep"),
}


@pytest.mark.parametrize(("value", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_json_cannot_hold_is_refused_by_its_place(value: Any, message: str) -> None:
    with pytest.raises(ValueRefused) as refused:
        encode(value)
    assert str(refused.value).endswith(message)


@pytest.mark.parametrize("innermost", [1, "x", None, [], {}], ids=repr)
def test_the_depth_is_limited_to_the_level(innermost: Any) -> None:
    deepest = nested(DEPTH_LIMIT, innermost)
    assert decode(encode(deepest)) == deepest
    with pytest.raises(ValueRefused, match=f"nested more than {DEPTH_LIMIT} levels deep"):
        encode([deepest])


def test_the_size_is_that_of_the_text() -> None:
    largest = "x" * (VALUE_LIMIT - 2)
    assert len(encode(largest)) == VALUE_LIMIT
    with pytest.raises(ValueRefused, match=r"the value takes 67,108,865 bytes as JSON; at most 67,108,864 are stored"):
        encode(largest + "x")


def test_a_wide_value_is_read_as_it_was_written() -> None:
    rows = [{"id": n, "name": f"row {n}", "ratio": n / 7, "tags": ["a", None, True]} for n in range(20_000)]
    assert json.loads(encode(rows)) == rows
    rows[-1]["tags"] = ["a", math.nan]
    with pytest.raises(ValueRefused, match=r"`\[19999\].tags\[1\]` is nan"):
        encode(rows)
