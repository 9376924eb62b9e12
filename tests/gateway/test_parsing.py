"""A body is read only where its values fit into memory; what stands in its texts does not count."""

import json

import pytest

from pilothouse.gateway.parsing import MOST_VALUES, read_body
from pilothouse.records.values import ValueRefused

TOO_MANY = {
    "empty lists": "[" + "[]," * MOST_VALUES + "[]]",
    "numbers": "[" + "1," * MOST_VALUES + "1]",
    "empty objects": "[" + "{}," * (MOST_VALUES // 2) + "{}," * (MOST_VALUES // 2) + "{}]",
    "members": "{" + ",".join(f'"{n}":1' for n in range(MOST_VALUES)) + "}",
    "behind texts with quotes": r'["\\","\"",' + "1," * MOST_VALUES + "1]",
}


@pytest.mark.parametrize("value", TOO_MANY.values(), ids=TOO_MANY)
def test_more_values_than_memory_holds_are_refused_before_they_are_read(value: str) -> None:
    with pytest.raises(ValueRefused, match="more than 1,000,000 values"):
        read_body(f'{{"value":{value}}}'.encode())


def test_a_long_text_may_have_any_characters() -> None:
    text = ',[{"\\' * MOST_VALUES
    assert read_body(json.dumps({"value": text}).encode()).text("value") == text


def test_as_many_values_as_there_may_be_are_read() -> None:
    value = [1] * (MOST_VALUES - 2)
    assert read_body(json.dumps({"value": value}).encode()).any("value") == value
