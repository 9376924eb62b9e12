"""The generated CRDs: up to date, small, and structural by the API server's rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel, Field

from pilothouse.api.crd import KINDS, drifted, main
from pilothouse.api.fields import Items, Text
from pilothouse.api.schema import SchemaError, structural

CRDS = Path(__file__).parents[2] / "crds"
FILES = sorted(CRDS.glob("*.yaml"))
FORBIDDEN = {"$ref", "$defs", "definitions", "title", "const", "anyOf", "oneOf", "allOf", "not", "discriminator"}
FORBIDDEN |= {"uniqueItems", "prefixItems", "exclusiveMinimum", "exclusiveMaximum", "patternProperties"}
Node = dict[str, Any]


@cache
def read(path: Path) -> Node:
    document: Node = yaml.safe_load(path.read_bytes())
    return document


def version_of(path: Path) -> Node:
    (version,) = read(path)["spec"]["versions"]
    return dict(version)


def root_of(path: Path) -> Node:
    return dict(version_of(path)["schema"]["openAPIV3Schema"])


def nodes(node: Node, path: str = "") -> Iterator[tuple[str, Node]]:
    """Every schema inside a schema, with its path."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(child, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield from nodes(node[keyword], f"{path}.*")


each_file = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


def test_the_checked_in_files_are_what_the_models_say() -> None:
    assert drifted(CRDS) == []
    assert len(FILES) == len(KINDS) == 4


def test_the_check_names_the_file_that_drifted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 0
    assert main(["--check", str(tmp_path)]) == 0
    stale = tmp_path / "pilothouse.dev_packs.yaml"
    stale.write_text(stale.read_text().replace("maxLength: 63", "maxLength: 64", 1))
    assert main(["--check", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"{stale} is not up to date: run `make crds`\n"


def test_the_check_names_a_missing_file(tmp_path: Path) -> None:
    main([str(tmp_path)])
    (tmp_path / "pilothouse.dev_agents.yaml").unlink()
    assert drifted(tmp_path) == [tmp_path / "pilothouse.dev_agents.yaml"]


@each_file
def test_a_crd_is_small(path: Path) -> None:
    assert path.stat().st_size < 200_000


@each_file
def test_a_crd_has_what_users_of_kubectl_expect(path: Path) -> None:
    crd = read(path)
    names = crd["spec"]["names"]
    assert crd["metadata"]["name"] == f"{names['plural']}.pilothouse.dev"
    assert names["categories"] == ["pilothouse"]
    assert names["shortNames"]
    assert crd["spec"]["scope"] == "Namespaced"
    version = version_of(path)
    assert version["subresources"] == {"status": {}}
    assert "Age" in [column["name"] for column in version["additionalPrinterColumns"]]


@each_file
def test_an_object_nobody_has_seen_is_not_ready(path: Path) -> None:
    root = root_of(path)
    assert root["required"] == ["spec"]
    assert root["properties"]["status"]["default"] == {"observedGeneration": -1}


@each_file
def test_a_schema_uses_only_what_structural_schemas_have(path: Path) -> None:
    for where, node in nodes(root_of(path)):
        assert not FORBIDDEN & node.keys(), where
        assert node.get("additionalProperties") is not False, where
        assert not ("properties" in node and "additionalProperties" in node), where
        assert "default" not in node or where == ".status", where
        untyped = node.get("x-kubernetes-int-or-string") or node.get("x-kubernetes-preserve-unknown-fields")
        assert node.get("type") in {"object", "array", "string", "integer", "number", "boolean"} or untyped, where


@each_file
def test_all_that_is_iterated_is_bounded(path: Path) -> None:
    own = {".apiVersion", ".kind"}
    for where, node in nodes(root_of(path)):
        kind = node.get("type")
        assert kind != "string" or "maxLength" in node or "enum" in node or where in own, where
        assert kind != "array" or ("maxItems" in node and "items" in node), where
        assert "additionalProperties" not in node or "maxProperties" in node, where


@each_file
def test_every_list_says_how_two_writers_share_it(path: Path) -> None:
    for where, node in nodes(root_of(path)):
        if node.get("type") != "array":
            continue
        kind = node["x-kubernetes-list-type"]
        if kind == "map":
            (key,) = node["x-kubernetes-list-map-keys"]
            assert key in node["items"]["required"], where
            assert node["items"]["properties"][key]["type"] == "string", where
        elif kind == "set":
            assert node["items"]["type"] in {"string", "integer"}, where
        else:
            assert kind == "atomic", where


@each_file
def test_patterns_are_for_re2(path: Path) -> None:
    for where, node in nodes(root_of(path)):
        assert not any(token in node.get("pattern", "") for token in ("(?=", "(?!", "(?<", "\\1")), where


@each_file
def test_arbitrary_json_stands_only_where_users_bring_their_own(path: Path) -> None:
    free = {where.rsplit(".", 1)[1] for where, node in nodes(root_of(path)) if _is_free(node)}
    assert free <= {"value", "default", "arguments", "schema", "match", "body", "*"}


def _is_free(node: Node) -> bool:
    return bool(node.get("x-kubernetes-preserve-unknown-fields"))


class Unbounded(BaseModel):
    text: str


class UnboundedList(BaseModel):
    names: list[Annotated[str, Text(3)]]


class UnboundedMap(BaseModel):
    labels: dict[str, Annotated[str, Text(3)]]


class Either(BaseModel):
    value: Annotated[str, Text(3)] | int


class Pair(BaseModel):
    pair: tuple[int, int]


class Above(BaseModel):
    number: Annotated[float, Field(gt=0)]


class Tree(BaseModel):
    child: Tree | None = None
    names: Annotated[tuple[Annotated[str, Text(3)], ...], Items(2)] = ()


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (Unbounded, "Unbounded.text: maxLength is missing"),
        (UnboundedList, "UnboundedList.names: maxItems is missing"),
        (UnboundedMap, "UnboundedMap.labels: maxProperties is missing"),
        (Either, "Either.value: structural schemas have no unions"),
        (Pair, "Pair.pair: structural schemas have no prefixItems"),
        (Above, "Above.number: structural schemas have no exclusiveMinimum"),
        (Tree, "Tree contains itself"),
    ],
)
def test_a_model_that_the_server_would_refuse_is_refused_here(model: type[BaseModel], complaint: str) -> None:
    with pytest.raises(SchemaError) as refusal:
        structural(model)
    assert complaint in str(refusal.value)
