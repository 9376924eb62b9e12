from pilothouse.records.values import JSON
from pilothouse.workflows.expressions.scope import prune


def test_pruning_keeps_lists_whole_and_leaves_out_the_rest() -> None:
    scope: dict[str, JSON] = {"a": {"b": {"c": 1, "d": 2}, "l": [{"x": 1, "y": 2}]}, "e": 3}
    assert prune(scope, [("a", "b", "c")]) == {"a": {"b": {"c": 1}}}
    assert prune(scope, [("a", "b", "c"), ("a", "b")]) == {"a": {"b": {"c": 1, "d": 2}}}
    assert prune(scope, [("a", "l", 0, "x")]) == {"a": {"l": [{"x": 1, "y": 2}]}}
    assert prune(scope, [("a", "zz", "y"), ("q",), ("e", "x")]) == {"a": {}, "e": 3}
    assert prune(scope, []) == {}
