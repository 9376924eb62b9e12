"""What a user writes comes back unchanged from the API server, which drops what the CRD's schema does not know."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pilothouse.api.base import ApiModel
from pilothouse.api.crd import KINDS, Kind, kind_schema
from pilothouse.api.manifest import load
from pilothouse.api.schema import prune
from tests.api.samples import full
from tests.api.strategies import objects

SCHEMAS = {kind.name: kind_schema(kind) for kind in KINDS}


def stored(manifest: dict[str, Any]) -> dict[str, Any]:
    """The object as the API server gives it back. It keeps metadata by rules of its own."""
    sent = json.loads(json.dumps(manifest))
    return {**prune(SCHEMAS[sent["kind"]], sent), "metadata": sent["metadata"]}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_object_survives_the_server(kind: Kind, data: st.DataObject) -> None:
    model: ApiModel = data.draw(objects(kind.model))
    manifest = model.manifest()
    loaded = load(stored(manifest))
    assert loaded == model
    assert loaded.manifest() == manifest


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_full_object_survives_the_server_word_for_word(kind: str) -> None:
    assert load(stored(full(kind))).manifest() == full(kind)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_full_object_uses_every_field_of_the_spec_or_its_alternatives(kind: Kind) -> None:
    spec = load(full(kind.name)).spec
    unused = set(type(spec).model_fields) - spec.model_fields_set
    assert unused <= {"workflow_ref", "arguments", "result"}


def test_a_field_that_no_model_knows_is_pruned() -> None:
    manifest = full("Workflow")
    manifest["spec"]["steps"][0]["runCommand"]["comand"] = ["x"]
    assert load(stored(manifest)).manifest() == full("Workflow")


def test_arbitrary_json_is_kept_where_it_belongs() -> None:
    manifest = full("Workflow")
    value = {"any": [{"thing": None}], "n": 2**60}
    manifest["spec"]["steps"][3]["transform"]["value"] = value
    assert stored(manifest)["spec"]["steps"][3]["transform"]["value"] == value


def test_status_of_a_newer_release_is_read_by_this_one() -> None:
    manifest = full("Workflow")
    manifest["status"]["invented"] = 1
    manifest["status"]["run"]["invented"] = 1
    assert load(manifest) == load(full("Workflow"))
