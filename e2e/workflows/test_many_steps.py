"""Workflows of as many steps as the schema allows: their status stays small."""

import json
from typing import Any

import pytest

from e2e.cluster.clients import Kubectl
from e2e.cluster.errors import ClusterError
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, light, workflow

MOST = 256
"""Steps of one workflow, as the schema has it."""

LIMIT = 64 * 1024
"""Bytes of a status."""


@pytest.fixture(scope="module")
def mine(release: Release, kubectl: Kubectl, shared_namespace: str) -> Kubectl:
    return kubectl.within(shared_namespace)


@pytest.fixture(scope="module")
def chained(mine: Kubectl) -> Applied:
    """Each step needs the one before."""
    steps = [light(_name(n), n, needs=[_name(n - 1)] if n else []) for n in range(MOST)]
    outputs = [{"name": f"output_{n}", "value": "x" * 1000} for n in range(64)]
    return Applied.of(mine, workflow("chained", *steps, outputs=outputs))


@pytest.fixture(scope="module")
def failing(mine: Kubectl) -> Applied:
    """Each step fails, and says so in a text of which each character takes four bytes."""
    steps = [light(_name(n), "${{ {'a': 1}['" + "🜚" * 150 + "'] }}") for n in range(MOST)]
    return Applied.of(mine, workflow("failing", *steps, failurePolicy="FinishAll"))


@pytest.fixture(scope="module", autouse=True)
def begun(chained: Applied, failing: Applied) -> None:
    """Both run at the same time."""


def _name(number: int) -> str:
    return f"step-{number:03}-{'x' * 54}"


def _size(status: dict[str, Any]) -> int:
    return len(json.dumps(status, ensure_ascii=False).encode())


def test_a_status_of_as_many_steps_as_there_can_be_is_small(chained: Applied, release: Release) -> None:
    status = chained.finished()["status"]
    assert (status["run"]["state"], status["run"]["progress"]) == ("Succeeded", f"{MOST}/{MOST}")
    assert _size(status) < LIMIT
    paths = [step["path"] for step in status["steps"]]
    assert paths == [_name(n) for n in range(MOST - 100, MOST)]
    events = Rows(release, chained.kubectl.namespace or "", "chained").events()
    assert [path for type_, path in events if type_ == "StepSucceeded"] == [_name(n) for n in range(MOST)]


def test_a_status_of_as_many_failures_is_small_and_says_why(failing: Applied) -> None:
    status = failing.finished()["status"]
    assert (status["run"]["state"], status["run"]["progress"]) == ("Failed", f"{MOST}/{MOST}")
    assert len(status["steps"]) == 100
    assert _size(status) < LIMIT
    assert all((step["code"], step["message"][:12]) == ("F-INP", "`{'a': 1}['🜚") for step in status["steps"])


def test_more_steps_are_refused_by_the_schema(mine: Kubectl) -> None:
    with pytest.raises(ClusterError, match=r"spec\.steps: Too many: 257: must have at most 256 items"):
        mine.apply(workflow("more", *(light(f"s{n}") for n in range(MOST + 1))))
