"""What the watches have shown, whatever order their events came in."""

from collections.abc import Callable
from typing import Any

import pytest

from pilothouse_operator.kube.resources import PODS, WORKFLOWS
from pilothouse_operator.objects import Key, Objects, key_of

KEY = Key("Workflow", "team-a", "hello")


def obj(version: str = "5", uid: str = "u1", name: str = "hello", **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "team-a", "name": name, "uid": uid, "resourceVersion": version, **metadata}}


def pod(owner: str, version: str = "5", name: str = "p", uid: str = "p1") -> dict[str, Any]:
    return obj(version, uid, name, ownerReferences=[{"uid": owner, "kind": "Workflow"}])


@pytest.fixture
def objects() -> Objects:
    return Objects()


def version(objects: Objects) -> str | None:
    found = objects.get("Workflow", "team-a", "hello")
    return None if found is None else f"{found['metadata']['uid']} {found['metadata']['resourceVersion']}"


@pytest.mark.parametrize("change", [None, "ADDED", "MODIFIED"])
def test_an_object_that_was_seen_is_known(objects: Objects, change: str | None) -> None:
    assert objects.see(WORKFLOWS, change, obj())
    assert version(objects) == "u1 5"
    assert objects.get("Workflow", "team-b", "hello") is None
    assert objects.get("Agent", "team-a", "hello") is None


EVENTS: list[tuple[str, list[tuple[str, dict[str, Any]]], str | None]] = [
    ("newer", [("MODIFIED", obj("6"))], "u1 6"),
    ("much newer", [("MODIFIED", obj("10"))], "u1 10"),
    ("older", [("MODIFIED", obj("4"))], "u1 5"),
    ("the same", [("MODIFIED", obj("5"))], "u1 5"),
    ("gone", [("DELETED", obj("6"))], None),
    ("gone before", [("DELETED", obj("4", "u0"))], "u1 5"),
    ("created anew", [("ADDED", obj("7", "u2"))], "u2 7"),
    ("created anew, and then the end of the old one", [("ADDED", obj("7", "u2")), ("DELETED", obj("6"))], "u2 7"),
    ("created anew, and then news of the old one", [("ADDED", obj("7", "u2")), ("MODIFIED", obj("6"))], "u2 7"),
    ("gone and created anew", [("DELETED", obj("6")), ("ADDED", obj("7", "u2"))], "u2 7"),
    ("of versions that cannot be compared", [("MODIFIED", obj("x"))], "u1 x"),
]


@pytest.mark.parametrize(("events", "known"), [each[1:] for each in EVENTS], ids=[each[0] for each in EVENTS])
def test_an_event_changes_what_is_known_unless_it_is_older(
    objects: Objects, events: list[tuple[str, dict[str, Any]]], known: str | None
) -> None:
    objects.see(WORKFLOWS, "ADDED", obj("5"))
    for change, body in events:
        objects.see(WORKFLOWS, change, body)
    assert version(objects) == known


def test_an_event_is_news_unless_all_it_shows_is_known(objects: Objects) -> None:
    assert objects.see(WORKFLOWS, None, obj("5"))
    assert not objects.see(WORKFLOWS, None, obj("5"))
    assert objects.see(WORKFLOWS, "MODIFIED", obj("6"))
    assert objects.see(WORKFLOWS, "ADDED", obj("6", "u2"))
    assert objects.see(WORKFLOWS, "DELETED", obj("6", "u2"))
    assert objects.see(WORKFLOWS, "DELETED", obj("6", "u2"))


def written(version: str, **more: Any) -> dict[str, Any]:
    """The object after its status was written."""
    managers = [{"manager": "kubectl", "time": "1"}, {"manager": "us", "subresource": "status", "time": version}]
    return {**obj(version, managedFields=managers), "status": {"version": version}, **more}


def test_a_status_that_was_written_is_no_news(objects: Objects) -> None:
    objects.see(WORKFLOWS, None, before := written("5"))
    objects.wrote_status(WORKFLOWS, before, written("6"))
    assert version(objects) == "u1 6"
    assert not objects.see(WORKFLOWS, "MODIFIED", written("6"))
    assert objects.see(WORKFLOWS, "MODIFIED", written("7"))


def _labelled(body: dict[str, Any]) -> None:
    body["metadata"]["labels"] = {"a": "b"}


def _applied(body: dict[str, Any]) -> None:
    body["metadata"]["managedFields"][0]["time"] = "2"


def _respecified(body: dict[str, Any]) -> None:
    body["spec"] = {"suspend": True}


@pytest.mark.parametrize("edit", [_labelled, _applied, _respecified])
def test_what_else_has_changed_with_a_status_is_news(objects: Objects, edit: Callable[[dict[str, Any]], None]) -> None:
    """The event of that change is older than the answer to the write, and may come after it."""
    objects.see(WORKFLOWS, None, before := written("5"))
    edit(changed := written("6"))
    edit(after := written("7"))
    objects.wrote_status(WORKFLOWS, before, after)
    assert objects.see(WORKFLOWS, "MODIFIED", changed)
    assert objects.see(WORKFLOWS, "MODIFIED", after)


def test_what_the_api_server_says_counts_whatever_was_seen(objects: Objects) -> None:
    objects.see(WORKFLOWS, "ADDED", obj("9"))
    objects.correct(WORKFLOWS, KEY, obj("3", "u2"))
    assert version(objects) == "u2 3"
    objects.correct(WORKFLOWS, KEY, None)
    assert version(objects) is None


def test_an_object_is_forgotten_only_if_it_is_the_one(objects: Objects) -> None:
    objects.see(WORKFLOWS, None, obj(uid="u2"))
    objects.forget(KEY, "u1")
    assert version(objects) == "u2 5"
    objects.forget(KEY, "u2")
    assert version(objects) is None
    objects.forget(KEY, "u2")


def test_all_are_those_of_a_kind_and_of_a_namespace(objects: Objects) -> None:
    for name in ("a", "b"):
        objects.see(WORKFLOWS, None, obj(name=name))
    objects.see(PODS, None, pod("u1"))
    assert [key_of(WORKFLOWS, each).name for each in objects.all("Workflow")] == ["a", "b"]
    assert len(list(objects.all("Workflow", "team-a"))) == 2
    assert list(objects.all("Workflow", "team-b")) == []


def names(objects: Objects, owner: str) -> list[str]:
    return [each["metadata"]["name"] for each in objects.pods_of(owner)]


def test_pods_are_found_by_their_owner(objects: Objects) -> None:
    objects.see(PODS, None, pod("u1", name="p", uid="p1"))
    objects.see(PODS, None, pod("u1", name="q", uid="p2"))
    objects.see(PODS, None, pod("u2", name="r", uid="p3"))
    assert (names(objects, "u1"), names(objects, "u2"), names(objects, "u3")) == (["p", "q"], ["r"], [])
    objects.see(PODS, "DELETED", pod("u1", "6", "p", "p1"))
    assert names(objects, "u1") == ["q"]
    newest = pod("u1", "7", "q", "p2") | {"status": {"phase": "Running"}}
    objects.see(PODS, "MODIFIED", newest)
    assert list(objects.pods_of("u1")) == [newest]


def test_a_pod_of_another_owner_takes_the_place_of_one_of_its_name(objects: Objects) -> None:
    objects.see(PODS, None, pod("u1", "5", "p", "p1"))
    objects.see(PODS, None, pod("u2", "6", "p", "p2"))
    assert (names(objects, "u1"), names(objects, "u2")) == ([], ["p"])


def test_each_kind_has_its_age(objects: Objects) -> None:
    assert objects.ages() == {}
    objects.see(WORKFLOWS, "DELETED", obj())
    assert 0 <= objects.ages()["Workflow"] < 60
    assert "Pod" not in objects.ages()


def test_a_key_is_told_as_people_say_it() -> None:
    assert str(KEY) == "Workflow team-a/hello"
