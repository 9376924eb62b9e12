"""The kstatus rules that every object of ours keeps."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pilothouse.api import conditions
from pilothouse.api.conditions import check_object


def observed(*states: tuple[str, str], generation: int = 2, observed_generation: int = 2) -> dict[str, Any]:
    entries = [{"type": kind, "status": status, "reason": "Pending"} for kind, status in states]
    status = {"observedGeneration": observed_generation, "conditions": entries}
    return {"metadata": {"generation": generation}, "status": status}


@pytest.mark.parametrize(
    "obj",
    [
        {"metadata": {"generation": 1}},
        {"metadata": {"generation": 1}, "status": {"observedGeneration": -1}},
        observed(("Ready", "True")),
        observed(("Ready", "True"), ("Finished", "True")),
        observed(("Ready", "Unknown"), ("Reconciling", "True")),
        observed(("Ready", "False"), ("Stalled", "True"), ("Finished", "True")),
        observed(("Ready", "False"), observed_generation=1),
    ],
)
def test_an_object_that_keeps_the_rules_passes(obj: dict[str, Any]) -> None:
    assert check_object(obj) == []


@pytest.mark.parametrize(
    ("obj", "complaint"),
    [
        (observed(), "Ready is missing"),
        (observed(("Finished", "True")), "Ready is missing"),
        (observed(("Ready", "False"), ("Stalled", "False")), "Stalled is False, but may stand only while True"),
        (
            observed(("Ready", "False"), ("Reconciling", "Unknown")),
            "Reconciling is Unknown, but may stand only while True",
        ),
        (
            observed(("Ready", "False"), ("Stalled", "True"), ("Reconciling", "True")),
            "Reconciling and Stalled are both True",
        ),
        (observed(("Ready", "True"), ("Stalled", "True")), "Ready is True beside Stalled"),
        (observed(("Ready", "True"), ("Reconciling", "True")), "Ready is True beside Reconciling"),
        (observed(("Ready", "True"), ("Ready", "True")), "two conditions have the same type"),
        (observed(("Ready", "true")), "Ready has the status true"),
        (
            observed(("Ready", "True"), observed_generation=3),
            "status.observedGeneration 3 is ahead of metadata.generation 2",
        ),
    ],
)
def test_a_broken_rule_is_named(obj: dict[str, Any], complaint: str) -> None:
    assert check_object(obj) == [complaint]


def test_a_condition_says_why_and_never_looks_ahead() -> None:
    obj = observed(("Ready", "True"))
    obj["status"]["conditions"][0] |= {"reason": "", "observedGeneration": 3}
    assert check_object(obj) == ["Ready has no reason", "Ready has observed a generation that does not exist yet"]


def test_conditions_without_an_observed_generation_are_checked_all_the_same() -> None:
    obj = observed(("Stalled", "True"))
    del obj["status"]["observedGeneration"]
    assert check_object(obj) == ["Ready is missing"]


def test_every_type_and_reason_has_a_sentence_of_meaning() -> None:
    body = ast.parse(Path(conditions.__file__).read_text(encoding="utf-8")).body
    for constant, after in pairwise(body):
        if isinstance(constant, ast.AnnAssign) and ast.unparse(constant.annotation) == "Final":
            assert isinstance(constant.target, ast.Name)
            if isinstance(constant.value, ast.Constant):
                assert isinstance(after, ast.Expr), constant.target.id
                assert ast.literal_eval(after.value).endswith(".")
