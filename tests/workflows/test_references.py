"""What an expression reads, as the worker finds it in the checked tree."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from pilothouse.workflows.expressions.errors import ExpressionError
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse.workflows.expressions.references import Path, References, StepReads

pytestmark = pytest.mark.asyncio(loop_scope="module")

NAMES = ("params", "steps", "run", "item")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def evaluator() -> AsyncIterator[Evaluator]:
    async with Evaluator(workers=1) as started:
        yield started


async def _references(evaluator: Evaluator, source: str) -> References:
    return (await evaluator.compile(source, NAMES)).references


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("1 + 1", set()),
        ("params.n", {("params", "n")}),
        ("params['n']", {("params", "n")}),
        ("params.`a-b`", {("params", "a-b")}),
        ("params", {("params",)}),
        ("size(params) + params.n", {("params",), ("params", "n")}),
        ("params[params.key]", {("params",), ("params", "key")}),
        ("params.list[params.i].name", {("params", "list"), ("params", "i")}),
        ("item", {("item",)}),
        ("item.a[0].b", {("item", "a", 0, "b")}),
        ("run.state == 'Failed'", {("run", "state")}),
        ("steps.x", {("steps", "x")}),
        ("steps.x.outputs", {("steps", "x", "outputs")}),
        ("steps['a-b'].state", {("steps", "a-b", "state")}),
        ("steps['a-b']['outputs']['k']", {("steps", "a-b", "outputs", "k")}),
        ("steps.x.outputs.a.b[2]['c d']", {("steps", "x", "outputs", "a", "b", 2, "c d")}),
        ("steps.x.outputs.l.map(i, i.id + params.n)", {("steps", "x", "outputs", "l"), ("params", "n")}),
        ("size(steps.x.outputs.l) > 0", {("steps", "x", "outputs", "l")}),
        ("{'a': params.a, params.b: [params.c]}", {("params", "a"), ("params", "b"), ("params", "c")}),
        ("params.a ? params.b : params.c", {("params", "a"), ("params", "b"), ("params", "c")}),
        ("cel.bind(v, steps.x.outputs.k, v + params.n)", {("steps", "x", "outputs", "k"), ("params", "n")}),
        ("params.l.exists(i, i in params.m)", {("params", "l"), ("params", "m")}),
        ("(params.s + 'x').split(item.by)[0]", {("params", "s"), ("item", "by")}),
        ("'x' in steps.x.outputs", {("steps", "x", "outputs")}),
    ],
)
async def test_the_literal_paths_are_read(evaluator: Evaluator, source: str, reads: set[Path]) -> None:
    references = await _references(evaluator, source)
    assert references.reads == reads
    assert references.tests == frozenset()


@pytest.mark.parametrize(
    ("source", "reads"),
    [
        ("[1].exists(params, params == 1)", set()),
        ("[{'state': 'x'}].map(steps, steps.state)", set()),
        ("['a'].map(item, item + params.s)", {("params", "s")}),
        ("[item].map(item, item)", {("item",)}),
        ("cel.bind(steps, 1, steps + 1)", set()),
        ("cel.bind(params, params.n, params)", {("params", "n")}),
        ("[1].all(item, item == 1) && item", {("item",)}),
        ("[[1]].map(item, item.map(params, params))", set()),
        ("[1].exists(params, .params.n == params)", {("params", "n")}),
    ],
)
async def test_a_variable_of_a_macro_hides_a_name(evaluator: Evaluator, source: str, reads: set[Path]) -> None:
    assert (await _references(evaluator, source)).reads == reads


@pytest.mark.parametrize(
    ("source", "reads", "tests"),
    [
        ("has(steps.x.outputs.k)", set(), {("steps", "x", "outputs", "k")}),
        ("has(params.a) && params.b", {("params", "b")}, {("params", "a")}),
        ("has(params.a) ? params.a : 1", {("params", "a")}, {("params", "a")}),
        ("params.?a.orValue(item)", {("item",)}, {("params", "a")}),
        ("params[?'a'].b.orValue(0)", set(), {("params", "a", "b")}),
        ("params.?a[?params.i].orValue(0)", {("params", "i")}, {("params", "a")}),
        ("[1].all(params, has(item.x))", set(), {("item", "x")}),
    ],
)
async def test_what_is_only_asked_for_is_told_apart(
    evaluator: Evaluator, source: str, reads: set[Path], tests: set[Path]
) -> None:
    references = await _references(evaluator, source)
    assert references.reads == reads
    assert references.tests == tests


@pytest.mark.parametrize(
    ("source", "column"),
    [
        ("steps[params.name]", 1),
        ("steps['a' + 'b'].state", 1),
        ("1 + size(steps)", 10),
        ("steps.map(k, k)", 1),
        ("steps.exists(steps, true)", 1),
        ("'x' in steps", 8),
        ("params.a.map(i, steps[i].state)", 17),
    ],
)
async def test_a_step_that_is_not_named_is_refused(evaluator: Evaluator, source: str, column: int) -> None:
    with pytest.raises(ExpressionError, match="a step must be named literally") as refused:
        await evaluator.compile(source, NAMES)
    assert refused.value.column == column


async def test_other_parts_of_a_step_than_outputs_and_state_are_refused(evaluator: Evaluator) -> None:
    with pytest.raises(ExpressionError, match="line 2: a step has `outputs` and `state`, not `output`") as refused:
        await evaluator.compile("true &&\n  steps.x.output.k", NAMES)
    assert refused.value.column == 17


async def test_reads_are_gathered_by_step(evaluator: Evaluator) -> None:
    source = "steps.a.outputs.k[0] + steps.a.state + steps['b-c'] + (has(steps.d.outputs.k) ? steps.d.outputs.j : 1)"
    steps = (await _references(evaluator, source)).steps
    assert list(steps) == ["a", "b-c", "d"]
    nothing: frozenset[Path] = frozenset()
    assert steps["a"] == StepReads(frozenset({("k", 0)}), nothing, state=True, whole=False)
    assert steps["b-c"] == StepReads(frozenset({()}), nothing, state=True, whole=True)
    assert steps["d"] == StepReads(frozenset({("k",), ("j",)}), frozenset({("k",)}), state=False, whole=False)


async def test_params_and_names_are_gathered(evaluator: Evaluator) -> None:
    references = await _references(evaluator, "params.a + params['b'].c + run.state + (has(params.d) ? 1 : item)")
    assert references.params == {"a", "b", "d"}
    assert references.names == {"params", "run", "item"}
    assert not references.all_params
    assert (await _references(evaluator, "size(params)")).all_params


@pytest.mark.feature("B37")
@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("steps.x.outputs.big.field[0]", ("steps", "x", "outputs", "big", "field", 0)),
        ("  (steps['x'].outputs)  ", ("steps", "x", "outputs")),
        ("item", ("item",)),
        ("params.n // the count", ("params", "n")),
        ("params.n + 0", None),
        ("has(params.n)", None),
        ("params.?n", None),
        ("params.l[params.i]", None),
        ("[params.n]", None),
        ("-params.n", None),
        ("'params.n'", None),
    ],
)
async def test_a_lone_path_is_recognised(evaluator: Evaluator, source: str, path: Path | None) -> None:
    assert (await _references(evaluator, source)).lone_path == path
