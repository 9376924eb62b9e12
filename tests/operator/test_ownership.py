"""The run key on a cluster: of what somebody has set, and of nothing that the schema gives by default."""

from typing import Any

import pytest

from pilothouse.api.manifest import load
from pilothouse.api.workflow import Workflow
from pilothouse_operator.ownership import key_of

WRITTEN = {
    "steps": [
        {"name": "a", "transform": {"value": {"deep": {"er": [1]}, "nothing": None}}},
        {"name": "b", "needs": ["a"], "runCommand": {"command": ["true"], "env": [{"name": "X", "value": "1"}]}},
    ],
}
# As a server of Kubernetes 1.34 has it.
OWNED: dict[str, Any] = {
    "f:spec": {
        ".": {},
        "f:steps": {
            ".": {},
            'k:{"name":"a"}': {
                ".": {},
                "f:name": {},
                "f:transform": {
                    ".": {},
                    "f:value": {".": {}, "f:deep": {".": {}, "f:er": {}}},
                },
            },
            'k:{"name":"b"}': {
                ".": {},
                "f:name": {},
                "f:needs": {".": {}, 'v:"a"': {}},
                "f:runCommand": {
                    ".": {},
                    "f:command": {},
                    "f:env": {".": {}, 'k:{"name":"X"}': {".": {}, "f:name": {}, "f:value": {}}},
                },
            },
        },
    }
}
STATUS: dict[str, Any] = {"f:status": {"f:run": {}}}
LABEL: dict[str, Any] = {"f:metadata": {"f:labels": {"f:team": {}}}}


def key(spec: dict[str, Any], *owned: Any) -> str:
    metadata = {"name": "x", "managedFields": [{"manager": f"m{n}", "fieldsV1": each} for n, each in enumerate(owned)]}
    loaded = load({"apiVersion": "pilothouse.dev/v1alpha1", "kind": "Workflow", "metadata": metadata, "spec": spec})
    assert isinstance(loaded, Workflow)
    return key_of(loaded)


def changed(**fields: Any) -> dict[str, Any]:
    """What was written, with these fields of step b, as a server with defaults would give them."""
    first, second = WRITTEN["steps"]
    return {"steps": [first, {**second, **fields}]}


def test_all_that_was_written_counts() -> None:
    assert key(WRITTEN, OWNED) == key(WRITTEN)


@pytest.mark.parametrize("owned", [(), ({},), ("gone",), (STATUS, LABEL)], ids=str)
def test_where_nothing_is_known_of_who_set_it_all_counts(owned: Any) -> None:
    assert key(changed(idempotent=False), *owned) == key(changed(idempotent=False))


def test_a_default_is_nobody_s_and_does_not_count() -> None:
    given = changed(idempotent=False, timeout="1h", retry={"attempts": 3})
    assert key(given, OWNED, STATUS, LABEL) == key(WRITTEN)
    assert key(given) != key(WRITTEN)


def test_what_anybody_set_counts() -> None:
    tree: dict[str, Any] = {
        "f:spec": {"f:steps": {'k:{"name":"b"}': {"f:timeout": {}, "f:retry": {".": {}, "f:attempts": {}}}}}
    }
    given = changed(idempotent=False, timeout="1h", retry={"attempts": 3, "jitter": True})
    assert key(given, OWNED, tree) == key(changed(timeout="1h", retry={"attempts": 3}))


@pytest.mark.parametrize(
    "fields",
    [
        {"runCommand": {"command": ["false"], "env": [{"name": "X", "value": "1"}]}},
        {"runCommand": {"command": ["true"], "env": [{"name": "X", "value": "2"}]}},
        {"runCommand": {"command": ["true"], "env": []}},
        {"needs": []},
    ],
    ids=str,
)
def test_a_value_that_somebody_changed_is_another_key(fields: dict[str, Any]) -> None:
    assert key(changed(**fields), OWNED) != key(WRITTEN, OWNED)


def test_a_null_within_a_value_counts_though_no_manager_owns_it() -> None:
    first, second = WRITTEN["steps"]
    without = {**first, "transform": {"value": {"deep": {"er": [1]}}}}
    assert key({"steps": [without, second]}, OWNED) != key(WRITTEN, OWNED)


def test_a_step_that_is_owned_as_a_whole_counts_as_a_whole() -> None:
    """As a list of type atomic is, and as an older manager may have had it."""
    assert key(changed(timeout="1h"), {"f:spec": {"f:steps": {}}}) == key(changed(timeout="1h"))
