"""Generated workflows with scripted outcomes, and the oracle: the states that the documented rules make of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from pilothouse.records.failures import Failure, FailureCode
from pilothouse.records.states import AttemptState, StepState
from pilothouse.workflows.executor import Ending

OK, FAIL, DENIED, LOST, UNBORN = "ok", "fail", "denied", "lost", "unborn"

ENDINGS = {
    OK: Ending(AttemptState.SUCCEEDED),
    FAIL: Ending(AttemptState.FAILED, failure=Failure(FailureCode.EXE, "it failed")),
    DENIED: Ending(AttemptState.FAILED, failure=Failure(FailureCode.SEC, "it may not")),
    LOST: Ending(AttemptState.LOST),
    UNBORN: Ending(AttemptState.NEVER_STARTED, failure=Failure(FailureCode.ENV, "it did not begin")),
}

OUTCOMES = st.lists(st.sampled_from(sorted(ENDINGS)), max_size=5) | st.just([UNBORN] * 4) | st.just([LOST] * 4)
"""What the attempts of a step come to, one after the other; all that follow succeed."""


@dataclass(frozen=True)
class Node:
    """A generated step. `handles` are steps whose state it reads; `branch` is a conditional and a side of it."""

    name: str
    kind: str
    needs: frozenset[str] = frozenset()
    handles: frozenset[str] = frozenset()
    branch: tuple[str, bool] | None = None
    condition: bool = True
    attempts: int = 1
    idempotent: bool = False
    outcomes: tuple[str, ...] = ()

    @property
    def all_needs(self) -> frozenset[str]:
        return self.needs | self.handles | ({self.branch[0]} if self.branch else set())


@dataclass(frozen=True)
class Case:
    """A workflow, and the seed of the order in which things end and runners die."""

    nodes: tuple[Node, ...]
    fail_fast: bool
    parallelism: int | None
    seed: int

    def spec(self) -> dict[str, Any]:
        policy = "FailFast" if self.fail_fast else "FinishAll"
        steps = [self._step(node) for node in self.nodes]
        return {"steps": steps, "failurePolicy": policy} | (
            {"parallelism": self.parallelism} if self.parallelism else {}
        )

    def _step(self, node: Node) -> dict[str, Any]:
        reads = [{"name": f"N{i}", "value": f"${{{{ steps.{name}.state }}}}"} for i, name in enumerate(node.handles)]
        step: dict[str, Any] = {"name": node.name, "needs": sorted(node.needs)}
        if node.kind == "conditional":
            sides = {True: [], False: []}  # type: dict[bool, list[str]]
            for other in self.nodes:
                if other.branch and other.branch[0] == node.name:
                    sides[other.branch[1]].append(other.name)
            given = {name: side for name, side in (("then", sides[True]), ("else", sides[False])) if side}
            return step | {"conditional": {"if": str(node.condition).lower()} | given}
        if node.kind == "transform":
            return step | {"transform": {"value": [read["value"] for read in reads]}}
        step["retry"] = {"attempts": node.attempts, "delay": "1ms", "jitter": False}
        return step | {"idempotent": node.idempotent, "runCommand": {"command": ["x"], "env": reads}}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes: list[Node] = []
    for index in range(draw(st.integers(1, 7))):
        names = [node.name for node in nodes]
        some = st.frozensets(st.sampled_from(names), max_size=3) if names else st.just(frozenset())
        open_ended = [node.name for node in nodes if node.kind == "conditional"]
        branch = draw(st.none() | st.tuples(st.sampled_from(open_ended), st.booleans())) if open_ended else None
        kind = draw(st.sampled_from(["runCommand", "runCommand", "transform", "conditional"]))
        heavy = kind == "runCommand"
        nodes.append(
            Node(
                name=f"s{index}",
                kind=kind,
                needs=draw(some),
                handles=draw(some) if kind != "conditional" else frozenset(),
                branch=branch,
                condition=draw(st.booleans()),
                attempts=draw(st.integers(1, 3)) if heavy else 1,
                idempotent=heavy and draw(st.booleans()),
                outcomes=tuple(draw(OUTCOMES)) if heavy else (),
            )
        )
    parents = {node.branch[0] for node in nodes if node.branch}
    kept = [
        node if node.name in parents or node.kind != "conditional" else replace(node, kind="transform")
        for node in nodes
    ]
    return Case(tuple(kept), draw(st.booleans()), draw(st.none() | st.integers(1, 3)), draw(st.integers(0, 2**32)))


def expected(case: Case) -> dict[str, StepState]:
    """The oracle: the final state of each step where nothing stops early."""
    states: dict[str, StepState] = {}
    for node in case.nodes:
        unmet = {StepState.FAILED, StepState.ERROR, StepState.OMITTED}
        strict = (node.needs | ({node.branch[0]} if node.branch else set())) - node.handles
        if any(states[need] in unmet for need in strict):
            states[node.name] = StepState.OMITTED
        elif node.branch and not chosen(case, states, node.branch):
            states[node.name] = StepState.SKIPPED
        else:
            states[node.name] = outcome(node)
    return states


def chosen(case: Case, states: Mapping[str, StepState], branch: tuple[str, bool]) -> bool:
    conditional = next(node for node in case.nodes if node.name == branch[0])
    return states[conditional.name] is StepState.SUCCEEDED and conditional.condition == branch[1]


def outcome(node: Node) -> StepState:
    attempt, restarts = 1, 0
    for told in node.outcomes:
        if told == OK:
            return StepState.SUCCEEDED
        if told == DENIED or (told == FAIL and attempt == node.attempts):
            return StepState.FAILED
        if told == LOST and not node.idempotent:
            return StepState.ERROR
        if told == UNBORN and restarts >= 3:
            return StepState.ERROR
        attempt, restarts = (attempt + 1, 0) if told == FAIL else (attempt, restarts + 1)
    return StepState.SUCCEEDED


def unhandled(case: Case, states: Mapping[str, StepState]) -> set[str]:
    handled = {name for node in case.nodes for name in node.handles}
    return {name for name, state in states.items() if state in {StepState.FAILED, StepState.ERROR}} - handled
