"""What expressions compile and evaluate to, and what the user is told when they do not."""

import json
import math
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pilothouse.records.values import JSON
from pilothouse.workflows.expressions.errors import ExpressionError, ExpressionLimit
from pilothouse.workflows.expressions.evaluator import Evaluator

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.feature("B37")]

SCOPE: dict[str, JSON] = {
    "params": {"n": 3, "x": 1.5, "s": "abc", "l": [1, 2, 3], "d": {"a": None}, "big": 2**63 - 1, "i": 3},
    "steps": {"a-b": {"state": "Succeeded", "outputs": {"k": True}}, "quiet": {"state": "Skipped", "outputs": {}}},
    "run": {"state": "Running"},
    "item": "it",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator(workers=1) as started:
        yield started


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("params.n", 3),
        ("params.x", 1.5),
        ("params.big", 2**63 - 1),
        ("params.d", {"a": None}),
        ("params.d.a", None),
        ("params.n > 1.5 && params.x < 2", True),
        ("params.n == 3.0", True),
        ("double(params.n) * params.x", 4.5),
        ("[params.n, params.s, null, true, 1.0]", [3, "abc", None, True, 1.0]),
        ("{'a': {'b': [item]}}", {"a": {"b": ["it"]}}),
        ("steps['a-b'].state == 'Succeeded' && steps['a-b'].outputs.k", True),
        ("has(steps.quiet.outputs.k) ? 1 : 2", 2),
        ("has(steps.quiet.outputs) ? 1 : 2", 1),
        ("steps.quiet.state == 'Succeeded' && steps.quiet.outputs.k", False),
        ("params.?missing.orValue('none')", "none"),
        ("params.l.filter(i, i > 1).map(i, i * 2)", [4, 6]),
        ("params.l[params.i - 1]", 3),
        ("params.s.upperAscii() + ' ' + ['a', 'b'].join('-')", "ABC a-b"),
        ("'%s is %d'.format([params.s, params.n])", "abc is 3"),
        ("base64.encode(b'hello')", "aGVsbG8="),
        ("math.greatest(params.l)", 3),
        ("cel.bind(v, params.n + 1, v * v)", 16),
        ("timestamp('2024-05-06T07:08:09.5+02:00')", "2024-05-06T05:08:09.500000Z"),
        ("timestamp(0)", "1970-01-01T00:00:00Z"),
        ("duration('90s')", "90s"),
        ("[duration('-0.25s'), duration('0s'), duration('1h')]", ["-0.25s", "0s", "3600s"]),
        ("18446744073709551615u", 2**64 - 1),
        ("-9223372036854775808", -(2**63)),
        ("params.s.matches('^a.c$')", True),
        ("'a\\u0000b' + '\\n'", "a\x00b\n"),
        ("'a' == 'b' // a comment", False),
    ],
)
async def test_values(evaluator: Evaluator, source: str, value: JSON) -> None:
    result = await evaluator.evaluate(source, SCOPE)
    assert result == value
    assert json.dumps(result) == json.dumps(value)


@pytest.mark.parametrize(
    "text",
    ['"', "\\", "\n", "{{", "${{ params.x }}", "🇩🇪", "שלום\u202e", "\\u0000", "\\ud800", "\ufffe", "x" * 65_000],
    ids=ascii,
)
async def test_text_passes_through_cel_unchanged(evaluator: Evaluator, text: str) -> None:
    assert await evaluator.evaluate("item", {"item": text}) == text
    assert await evaluator.evaluate("item[0] == item[1]", {"item": [text, text]}) is True
    assert await evaluator.evaluate("{item: 1}", {"item": text}) == {text: 1}


@pytest.mark.parametrize(
    ("source", "result_type"),
    [
        ("params.n", "dyn"),
        ("params.n > 1", "bool"),
        ("1 + 1", "int"),
        ("['a']", "list<string>"),
        ("{'a': 1.0}", "map<string, double>"),
    ],
)
async def test_the_type_of_the_result_is_known(evaluator: Evaluator, source: str, result_type: str) -> None:
    assert (await evaluator.compile(source, SCOPE)).result_type == result_type


@pytest.mark.parametrize(
    ("source", "message", "column"),
    [
        ("stpes.x.state", 'unknown name "stpes"; known names are item, params, run, steps; did you mean "steps"?', 1),
        ("1 + zebra.x", 'unknown name "zebra"; known names are item, params, run, steps', 5),
        ("'🇩🇪é' + zz", 'unknown name "zz"; known names are item, params, run, steps', 9),
        ("true &&\n  zz", 'line 2: unknown name "zz"; known names are item, params, run, steps', 3),
        ("now()", 'unknown function "now"', 4),
        ("1 + 'a'", "no operator + for (int, string)", 3),
        ("1 == 1.0", "no operator == for (int, double); convert one side with int() or double()", 3),
        ("params + 1", "no operator + for (map(string, dyn), int)", 8),
        ("true ? 1 : 'a'", "both outcomes of ? : must have one type", 6),
        ("[1].join(',')", "no function join for (list(int), string)", 9),
        ("1 +", "syntax error: unexpected end of the expression", 4),
        ("1 2", "syntax error: unexpected '2'", 3),
        ("'a", "syntax error: token recognition error", 1),
        ("", "syntax error: unexpected end of the expression", 1),
        ("${{ params.n }}", "write it without the ${{ }}", 1),
        ("'\ud800'", "holds a lone surrogate", 2),
    ],
)
async def test_a_wrong_expression_is_explained(evaluator: Evaluator, source: str, message: str, column: int) -> None:
    with pytest.raises(ExpressionError) as refused:
        await evaluator.compile(source, SCOPE)
    assert message in refused.value.message
    assert refused.value.column == column


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("params.q", "no such key: params.q; guard it with has(params.q)"),
        ("steps['a-b'].outputs.z.y", "no such key: steps['a-b'].outputs.z; guard it with has(steps['a-b'].outputs.z)"),
        ("steps.quiet.outputs.k", "no such key: steps.quiet.outputs.k; guard it with has(steps.quiet.outputs.k)"),
        ("params['a-b']", "no such key: params['a-b']; guard it with 'a-b' in params"),
        ("params.l.map(i, {'a': i}[params.s])", "no such key: abc; guard it with has(...)"),
        ("params.s.x", "params.s is a string, so it has no `x`"),
        ("params.d.a.x", "params.d.a is null, so it has no `x`"),
        ("params.l[5]", "index 5 is out of range: the list has 3 items"),
        ("params.l[-1]", "index -1 is out of range: the list has 3 items"),
        ("params.n + 1.5", "no operator + for (int64, double); convert one side with int() or double()"),
        ("params.n && true", "a side of && is not a bool"),
        ("params.s ? 1 : 2", "the condition of ? : is not a bool"),
        ("params.n.all(x, true)", "all, exists, map and filter need a list or a map"),
        ("params.n / 0", "divide by zero"),
        ("params.big + 1", "integer overflow"),
        ("int(params.s)", "cannot convert string to int"),
        ("'a'.matches('(' + params.s)", "invalid regular expression"),
        ("b'a'", "the result holds bytes; use string(...) or base64.encode(...)"),
        ("[type(1)]", "the result holds a type, which is no JSON value"),
        ("0.0 / 0.0", "the result holds the number nan"),
        ("[1.0 / 0.0]", "the result holds the number inf"),
        ("{1: 2}", "the result is a map with the key 1; keys must be strings"),
        ("params.?n", "the result holds an optional value; end it with .orValue(...)"),
        ("[optional.of(1)]", "the result holds an optional value; end it with .orValue(...)"),
    ],
)
async def test_a_failed_evaluation_is_explained(evaluator: Evaluator, source: str, message: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        await evaluator.evaluate(source, SCOPE)
    assert message in refused.value.message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "beyond 64 bits"),
        ({"a": [-(2**63) - 1]}, r"item\.a\[0\].*beyond 64 bits"),
        (math.nan, "nan"),
        ([math.inf], "inf"),
        ("a\ud800b", "lone surrogate"),
        ({"\udfff": 1}, "lone surrogate"),
        (["a\x00b"], "NUL character"),
        ({"\x00": 1}, "NUL character"),
    ],
    ids=ascii,
)
async def test_a_value_that_cel_cannot_hold_is_refused(evaluator: Evaluator, value: JSON, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        await evaluator.evaluate("item == 1", {"item": value})


async def test_a_bottomless_value_is_refused(evaluator: Evaluator) -> None:
    value: JSON = 1
    for _ in range(10_000):
        value = [value]
    with pytest.raises(ExpressionError, match="nested more than 200 levels"):
        await evaluator.evaluate("item == 1", {"item": value})


async def test_only_what_is_read_is_looked_at(evaluator: Evaluator) -> None:
    outputs: JSON = {"k": 1, "huge": "x" * 10_000_000, "odd": math.nan, "far": 2**70}
    scope: dict[str, JSON] = {"steps": {"x": {"state": "Succeeded", "outputs": outputs}}, "params": {"p": math.nan}}
    assert await evaluator.evaluate("steps.x.outputs.k + 1", scope) == 2
    assert await evaluator.evaluate("has(steps.x.outputs.nothing)", scope) is False
    with pytest.raises(ExpressionLimit, match="reads more than 262,144 bytes"):
        await evaluator.evaluate("size(steps.x.outputs.huge)", scope)


async def test_the_size_of_values_and_results_is_limited(evaluator: Evaluator) -> None:
    assert await evaluator.evaluate("size(item)", {"item": "x" * 262_000}) == 262_000
    assert await evaluator.evaluate("item", {"item": "x" * 65_000}) == "x" * 65_000
    with pytest.raises(ExpressionLimit, match="the result takes more than 65,536 bytes"):
        await evaluator.evaluate("item", {"item": "x" * 66_000})
    with pytest.raises(ExpressionLimit, match="reads more than 262,144 bytes"):
        await evaluator.evaluate("size(item)", {"item": ["é" * 100] * 1000})
    with pytest.raises(ExpressionError, match="9,002 bytes; at most 8,192"):
        await evaluator.evaluate(f"'{'x' * 9000}'", {})


async def test_the_names_known_are_those_of_the_scope(evaluator: Evaluator) -> None:
    assert await evaluator.evaluate("reviewer + '!'", {"reviewer": "ann"}) == "ann!"
    with pytest.raises(ExpressionError, match="unknown name"):
        await evaluator.evaluate("reviewer + '!'", {"other": "ann"})
    with pytest.raises(ExpressionError, match="no names are known here"):
        await evaluator.evaluate("reviewer", {})
