"""What an expression reads: the literal paths from the names that it is given.

Every access that is written out (`steps.build.outputs.files[0]`, `steps['a-b'].state`) is one path. Anything
computed ends the path, and all below it counts as read: `params.list.map(x, x.id)` reads `params.list`.
Variables of `map`, `all`, `cel.bind` and the like hide a name of the same spelling, as CEL says.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from pilothouse.workflows.expressions.checked import (
    Call,
    Checked,
    Collection,
    Comprehension,
    Literal,
    Name,
    Node,
    Select,
)
from pilothouse.workflows.expressions.errors import ExpressionError

Path: TypeAlias = tuple[str | int, ...]


class StepReads(NamedTuple):
    """What is read of one step.

    outputs: paths below `outputs`; `()` is all of them.
    guarded: those of `outputs` that are asked for by `has()` or `?`, so that they may be absent.
    state: whether the state is read.
    whole: whether the step is read as one value, which counts as reading all outputs and the state.
    """

    outputs: frozenset[Path]
    guarded: frozenset[Path]
    state: bool
    whole: bool


class References(NamedTuple):
    """What one expression reads.

    reads: the paths whose value is used, from the name on: `("steps", "build", "outputs", "files", 0)`.
    tests: the paths that are asked for, by `has()` or `?`.
    lone_path: the path, if the expression is nothing but one; its value may then be passed on without CEL.
    """

    reads: frozenset[Path]
    tests: frozenset[Path]
    lone_path: Path | None

    @property
    def names(self) -> frozenset[str]:
        """The names read: `params`, `steps`, `run`, `item` or what `as` says."""
        return frozenset(str(path[0]) for path in self.reads | self.tests)

    @property
    def params(self) -> frozenset[str]:
        """The parameters read by name."""
        return frozenset(str(path[1]) for path in self.reads | self.tests if path[0] == "params" and path[1:])

    @property
    def all_params(self) -> bool:
        """Whether `params` is read as one value."""
        return ("params",) in self.reads

    @property
    def steps(self) -> Mapping[str, StepReads]:
        """What is read of each step, by the step's name."""
        names = sorted({str(path[1]) for path in self.reads | self.tests if path[0] == "steps"})
        return {name: self._of_step(name) for name in names}

    def _of_step(self, name: str) -> StepReads:
        reads = {path[2:] for path in self.reads if path[:2] == ("steps", name)}
        tests = {path[2:] for path in self.tests if path[:2] == ("steps", name)}
        whole = () in reads | tests
        outputs = frozenset(path[1:] for path in reads | tests if path[:1] == ("outputs",))
        guarded = frozenset(path[1:] for path in tests if path[:1] == ("outputs",))
        state = any(path[:1] == ("state",) for path in reads | tests)
        return StepReads(outputs | ({()} if whole else set()), guarded, state or whole, whole)


def find_references(checked: Checked, names: frozenset[str]) -> References:
    """The references of a checked expression to `names`.

    Raises ExpressionError where a step is not named literally or something else than `outputs` or `state` is
    read of it; its `column` is the offset in the whole source, from 0.
    """
    finder = _Finder(names, checked.positions)
    finder.visit(checked.root, frozenset())
    lone = finder.access(checked.root, frozenset())
    return References(
        frozenset(finder.reads),
        frozenset(finder.tests),
        lone.path if lone is not None and not lone.tests else None,
    )


class _Access(NamedTuple):
    path: Path
    tests: bool


class _Finder:
    def __init__(self, names: frozenset[str], positions: dict[int, int]) -> None:
        self.names = names
        self.positions = positions
        self.reads: set[Path] = set()
        self.tests: set[Path] = set()

    def visit(self, node: Node, bound: frozenset[str]) -> None:
        access = self.access(node, bound)
        if access is not None:
            self._refuse_odd_step(access.path, node)
            (self.tests if access.tests else self.reads).add(access.path)
        elif isinstance(node, Comprehension):
            self._visit_comprehension(node, bound)
        else:
            for child in _children(node):
                self.visit(child, bound)

    def access(self, node: Node, bound: frozenset[str]) -> _Access | None:
        """The path that a node is, if it is one."""
        if isinstance(node, Name):
            return self._root(node.name, bound)
        if isinstance(node, Select):
            return _step_down(self.access(node.operand, bound), node.field, node.only_tests)
        if isinstance(node, Call) and node.function in _ACCESSORS:
            operand, key = node.arguments
            if isinstance(key, Literal) and key.value is not None:
                return _step_down(self.access(operand, bound), key.value, node.function != "_[_]")
        return None

    def _root(self, name: str, bound: frozenset[str]) -> _Access | None:
        # A leading dot is how CEL names the outer of two equal names.
        known = name.startswith(".") or name not in bound
        plain = name.removeprefix(".")
        return _Access((plain,), tests=False) if known and plain in self.names else None

    def _visit_comprehension(self, node: Comprehension, bound: frozenset[str]) -> None:
        for outside in node.outside:
            self.visit(outside, bound)
        for inside in node.body:
            self.visit(inside, bound | node.variables | {node.accumulator})
        self.visit(node.result, bound | {node.accumulator})

    def _refuse_odd_step(self, path: Path, node: Node) -> None:
        if path[0] != "steps":
            return
        if len(path) == 1:
            raise ExpressionError(
                "a step must be named literally, as steps.build or steps['my-step']; here `steps` is read as a whole",
                self.positions.get(node.id),
            )
        if len(path) > 2 and path[2] not in {"outputs", "state"}:
            raise ExpressionError(f"a step has `outputs` and `state`, not `{path[2]}`", self.positions.get(node.id))


_ACCESSORS = frozenset({"_[_]", "_?._", "_[?_]"})


def _step_down(above: _Access | None, key: str | int, tests: bool) -> _Access | None:
    return None if above is None else _Access((*above.path, key), above.tests or tests)


def _children(node: Node) -> tuple[Node, ...]:
    if isinstance(node, Select):
        return (node.operand,)
    if isinstance(node, Call):
        return node.arguments
    return node.items if isinstance(node, Collection) else ()
