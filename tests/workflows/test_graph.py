import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.workflows.graph import CycleError, Graph, GraphError, UnknownNeed

pytestmark = pytest.mark.feature("B30")


@st.composite
def acyclic(draw: st.DrawFn) -> dict[str, list[str]]:
    """A graph without a cycle, whose nodes are given in any order."""
    size = draw(st.integers(0, 12))
    needs = {
        f"n{index}": draw(st.lists(st.sampled_from([f"n{j}" for j in range(index)]))) if index else []
        for index in range(size)
    }
    return {name: needs[name] for name in draw(st.permutations(list(needs)))}


@given(acyclic())
def test_every_step_stands_in_the_first_level_after_all_its_needs(needs: dict[str, list[str]]) -> None:
    levels = Graph(needs).levels()
    level_of = {name: number for number, level in enumerate(levels) for name in level}
    assert sorted(level_of) == sorted(needs)
    assert sum(map(len, levels)) == len(needs)
    for name, wanted in needs.items():
        assert level_of[name] == max((level_of[need] + 1 for need in wanted), default=0)


@given(acyclic())
def test_inside_a_level_the_given_order_holds(needs: dict[str, list[str]]) -> None:
    order = list(needs)
    for level in Graph(needs).levels():
        assert level == sorted(level, key=order.index)


@given(acyclic())
def test_dependents_are_the_needs_turned_round(needs: dict[str, list[str]]) -> None:
    graph = Graph(needs)
    for name in needs:
        assert list(graph.dependents(name)) == [other for other in needs if name in needs[other]]
        assert set(graph.needs(name)) == set(needs[name])


def test_the_levels_do_not_depend_on_the_order_of_needs() -> None:
    names = [f"s{index}" for index in range(30)]
    shuffler = random.Random(7)  # noqa: S311 - only a shuffle
    needs = {name: shuffler.sample(names[:index], min(index, 5)) for index, name in enumerate(names)}
    expected = Graph(needs).levels()
    for _ in range(200):
        assert Graph({name: shuffler.sample(want, len(want)) for name, want in needs.items()}).levels() == expected


@pytest.mark.parametrize("size", [100, 5_000])
def test_long_and_wide_graphs(size: int) -> None:
    line = {f"s{index}": [f"s{index - 1}"] if index else [] for index in range(size)}
    assert Graph(line).levels() == [[name] for name in line]
    wide: dict[str, list[str]] = {"start": []} | {f"s{index}": ["start"] for index in range(size)} | {"end": list(line)}
    assert Graph(wide).levels() == [["start"], list(line), ["end"]]


def test_a_chain_of_diamonds_is_not_walked_path_by_path() -> None:
    needs: dict[str, list[str]] = {"j0": []}
    for index in range(100):
        needs |= {f"a{index}": [f"j{index}"], f"b{index}": [f"j{index}"], f"j{index + 1}": [f"a{index}", f"b{index}"]}
    assert len(Graph(needs).levels()) == 201
    needs["j0"] = ["j100"]
    with pytest.raises(CycleError):
        Graph(needs)


@pytest.mark.feature("B31")
@pytest.mark.parametrize(
    ("needs", "cycle"),
    [
        ({"a": ["a"]}, "a -> a"),
        ({"a": ["b"], "b": ["a"]}, "a -> b -> a"),
        ({"x": [], "c": ["b"], "a": ["c", "x"], "b": ["a"], "after": ["a"]}, "c -> b -> a -> c"),
        ({"after": ["b"], "a": ["b"], "b": ["a"]}, "a -> b -> a"),
    ],
)
def test_a_cycle_is_named(needs: dict[str, list[str]], cycle: str) -> None:
    with pytest.raises(CycleError, match=f"{cycle}$") as refused:
        Graph(needs)
    assert " -> ".join(refused.value.cycle) == cycle


@pytest.mark.feature("B31")
@given(acyclic(), st.data())
def test_the_named_cycle_is_one_of_the_graph(needs: dict[str, list[str]], data: st.DataObject) -> None:
    if not needs:
        return
    graph = Graph(needs)
    tail = data.draw(st.sampled_from(list(needs)))
    ancestors = {tail}
    for level in reversed(graph.levels()):
        ancestors |= {need for name in level if name in ancestors for need in graph.needs(name)}
    needs[data.draw(st.sampled_from(sorted(ancestors)))].append(tail)
    with pytest.raises(CycleError) as refused:
        Graph(needs)
    cycle = refused.value.cycle
    assert cycle[0] == cycle[-1]
    assert len(set(cycle)) == len(cycle) - 1
    assert all(after in needs[name] for name, after in pairwise(cycle))


@pytest.mark.feature("B31")
def test_a_long_cycle_needs_no_recursion() -> None:
    needs = {f"s{index}": [f"s{(index + 1) % 5_000}"] for index in range(5_000)}
    with pytest.raises(CycleError) as refused:
        Graph(needs)
    assert len(refused.value.cycle) == 5_001


def test_an_unknown_need_is_named_with_the_likely_one() -> None:
    with pytest.raises(UnknownNeed, match=r"step `test` needs `biuld`.*did you mean `build`\?") as refused:
        Graph({"build": [], "test": ["biuld"]})
    assert (refused.value.name, refused.value.need, refused.value.suggestion) == ("test", "biuld", "build")


def test_an_unknown_need_without_a_likely_one_suggests_nothing() -> None:
    with pytest.raises(GraphError, match=r"no such step$"):
        Graph({"build": [], "test": ["zzz"]})


def test_a_need_given_twice_counts_once() -> None:
    graph = Graph({"a": [], "b": ["a", "a"]})
    assert graph.needs("b") == ("a",)
    assert graph.dependents("a") == ("b",)
