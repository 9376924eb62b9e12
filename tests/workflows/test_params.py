"""Params: what is typed at a terminal, bound to what was declared."""

import pytest

from pilothouse.api.params import Param
from pilothouse.records.values import JSON
from pilothouse.workflows.params import ParamError, bind, parse


def declared(**fields: object) -> Param:
    return Param.model_validate({"name": "p", "type": "string"} | fields)


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        ("string", "1", "1"),
        ("string", "", ""),
        ("integer", "-3", -3),
        ("number", "2", 2),
        ("number", "1e3", 1000.0),
        ("boolean", "true", True),
        ("array", '[1, "é"]', [1, "é"]),
        ("object", '{"a": null}', {"a": None}),
    ],
)
def test_a_typed_value_gets_the_type_of_its_param(type_: str, text: str, value: JSON) -> None:
    parsed = parse(declared(type=type_), text)
    assert (parsed, type(parsed)) == (value, type(value))


@pytest.mark.parametrize(
    ("fields", "text", "says"),
    [
        ({"type": "integer"}, "1.5", "param `p` must be an integer, not 1.5"),
        ({"type": "integer"}, "true", "param `p` must be an integer, not true"),
        ({"type": "integer"}, "one", "param `p` must be an integer in JSON, not 'one'"),
        ({"type": "number"}, "false", "param `p` must be a number, not false"),
        ({"type": "boolean"}, "1", "param `p` must be a boolean, not 1"),
        ({"type": "array"}, "{}", "param `p` must be an array, not {}"),
        ({"type": "object"}, "[]", "param `p` must be an object, not []"),
        ({"type": "object"}, "{", "param `p` must be an object in JSON, not '{'"),
        ({"type": "array"}, "[" * 100_000, "param `p` must be an array in JSON"),
    ],
)
def test_a_value_of_another_type_is_refused_with_what_would_fit(fields: dict[str, str], text: str, says: str) -> None:
    with pytest.raises(ParamError) as refused:
        parse(declared(**fields), text)
    assert str(refused.value).startswith(says)
    assert len(str(refused.value)) < 300


def test_values_outside_of_the_enum_are_refused() -> None:
    param = declared(type="integer", enum=[0, 1])
    assert bind([param], {"p": 1}) == {"p": 1}
    with pytest.raises(ParamError, match="param `p` must be one of 0, 1, not 2"):
        bind([param], {"p": 2})


def test_given_values_win_over_defaults_and_absent_ones_stay_absent() -> None:
    params = [declared(name="a", default="x"), declared(name="b", default="y"), declared(name="c")]
    assert bind(params, {"a": "given"}) == {"a": "given", "b": "y"}


def test_missing_and_unknown_params_are_named() -> None:
    with pytest.raises(ParamError, match=r"param `p` \(string\) needs a value"):
        bind([declared(required=True)], {})
    with pytest.raises(ParamError, match="there is no param `repoo`; did you mean `repo`\\?"):
        bind([declared(name="repo")], {"repoo": "x"})
    with pytest.raises(ParamError, match="there is no param `x`; there are: none"):
        bind([], {"x": "y"})
