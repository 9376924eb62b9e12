"""Ownership: which fields of a Workflow's spec somebody has set, so that what the schema gives is not taken for it.

The API server fills in the schema's defaults also when it only reads an object: a release that brings one must start
nothing. It keeps in `metadata.managedFields` who set what, as trees (`FieldsV1` of Kubernetes' meta/v1): `f:<name>` is
a field, `k:<keys>` the item of a list with those keys, and a leaf stands for all that is below. A default is nobody's.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pilothouse.api.workflow import Workflow, key_of_fields

Tree = Mapping[str, Any]


def key_of(workflow: Workflow) -> str:
    """The run key of what was set. Where nothing is known of who set it, all counts."""
    spec = workflow.spec.manifest()
    trees = _below(map(_fields, workflow.metadata.managed_fields), "f:spec")
    return key_of_fields(_owned(spec, trees) if trees else spec)


def _fields(entry: Any) -> Tree:
    fields = entry.get("fieldsV1") if isinstance(entry, dict) else None
    return fields if isinstance(fields, dict) else {}


def _owned(value: Any, trees: Sequence[Tree]) -> Any:
    """What of the value is in one of the trees. Nulls are in none, and a schema adds no item to a list."""
    if not all(trees):
        return value
    if isinstance(value, dict):
        below = {name: _below(trees, f"f:{name}") for name in value}
        return {name: _owned(item, below[name]) for name, item in value.items() if below[name] or item is None}
    if isinstance(value, list):
        return [_owned(item, own) if (own := _of_item(trees, item)) else item for item in value]
    return value


def _below(trees: Iterable[Tree], name: str) -> list[Tree]:
    return [tree[name] for tree in trees if isinstance(tree.get(name), dict)]


def _of_item(trees: Iterable[Tree], item: Any) -> list[Tree]:
    """The trees of an item of a list whose items have keys."""
    return [own for tree in trees for name, own in tree.items() if name.startswith("k:") and _has(item, name[2:])]


def _has(item: Any, keys: str) -> bool:
    return isinstance(item, dict) and json.loads(keys).items() <= item.items()
