"""One full object of each kind, as users write them, and helpers to change one."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml


class _JsonLike(yaml.SafeLoader):
    """YAML as the API server reads it: a time stays a text."""


_JsonLike.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def read_yaml(path: Path) -> list[dict[str, Any]]:
    return list(yaml.load_all(path.read_text(encoding="utf-8"), _JsonLike))  # a SafeLoader


FULL = {document["kind"]: document for document in read_yaml(Path(__file__).with_name("full.yaml"))}


def full(kind: str) -> dict[str, Any]:
    """A fresh copy of the full object of a kind."""
    return copy.deepcopy(FULL[kind])


def workflow(**spec: Any) -> dict[str, Any]:
    """A Workflow with one step, unless `spec` has others."""
    steps = [{"name": "a", "runCommand": {"command": ["true"]}}]
    return _object("Workflow", {"steps": steps} | spec)


def steps(*entries: dict[str, Any]) -> dict[str, Any]:
    """A Workflow with these steps."""
    return _object("Workflow", {"steps": list(entries)})


def agent(**spec: Any) -> dict[str, Any]:
    """An Agent with a model, and what `spec` says."""
    return _object("Agent", {"model": {"provider": "OpenAI", "name": "m"}} | spec)


def _object(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "pilothouse.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
