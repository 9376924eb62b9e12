"""No field is silently accepted: each is refused by its name, or carried out and in the file of everything."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from pilothouse.api.agent import Agent, AgentSpec
from pilothouse.api.base import ApiModel
from pilothouse.api.workflow import WorkflowSpec
from pilothouse.cli.manifests import read
from pilothouse.workflows.checks.support import NOT_YET, supported, unsupported

EVERYTHING = Path(__file__).parents[2] / "cli" / "good" / "everything.yaml"

Fields = set[tuple[type[ApiModel], str]]


def _described(model: type[ApiModel], seen: Fields) -> Fields:
    """Every field of the model and of the models below it, leaving out what is below a refused field."""
    for name, field in model.model_fields.items():
        alias = field.alias or name
        if (model, alias) in seen:
            continue
        seen.add((model, alias))
        if alias not in NOT_YET.get(model, ()):
            for below in _models_in(field.annotation):
                _described(below, seen)
    return seen


def _models_in(annotation: Any) -> Iterator[type[ApiModel]]:
    if isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _exercised() -> Fields:
    """Every field that the file of everything sets."""
    specs = [manifest.object.spec for manifest in read([EVERYTHING]).all if hasattr(manifest.object, "spec")]
    parts: list[BaseModel] = [part for spec in specs for _, part in supported(spec, "spec")]
    return {
        (type(part), type(part).model_fields[name].alias or name)
        for part in parts
        if isinstance(part, ApiModel)
        for name in part.model_fields_set
    }


def test_each_field_is_carried_out_or_refused_and_none_is_both() -> None:
    described = _described(WorkflowSpec, set()) | _described(AgentSpec, set())
    refused = {(model, entry) for model, entries in NOT_YET.items() for entry in entries if ":" not in entry}
    assert described - refused - _exercised() == set()
    assert refused & _exercised() == set()


def test_the_table_names_only_fields_that_exist() -> None:
    for model, entries in NOT_YET.items():
        aliases = {field.alias or name for name, field in model.model_fields.items()}
        assert {entry.partition(":")[0] for entry in entries} <= aliases, model


@pytest.mark.parametrize(
    ("spec", "paths"),
    [
        ({"governance": {"policies": [], "preapproved": []}, "skills": []}, []),
        ({"governance": {"autonomy": "Supervised", "approvalTTL": "24h"}}, ["autonomy", "approvalTTL"]),
        ({"governance": {"autonomy": "Full", "budget": {"turns": 1}}}, ["autonomy"]),
        ({"governance": {"domains": {"deny": ["a"]}, "rateLimit": {"calls": 1}}}, ["rateLimit"]),
    ],
)  # fmt: skip
def test_only_a_default_that_turns_nothing_on_asks_for_nothing(spec: dict[str, Any], paths: list[str]) -> None:
    model = {"provider": "OpenAI", "name": "m"}
    agent = Agent.model_validate({"metadata": {"name": "a"}, "spec": {"model": model, **spec}})
    assert [problem.path for problem in unsupported(agent)] == [f"spec.governance.{path}" for path in paths]
