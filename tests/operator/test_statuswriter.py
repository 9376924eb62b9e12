"""Statuses and Events: written when they say something new, and never to another object."""

import copy
from typing import Any

import pytest

from pilothouse_operator.kube.errors import ApiUnavailable, Refused
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import EVENTS, WORKFLOWS
from pilothouse_operator.objects import Objects
from pilothouse_operator.statuswriter import KEPT, PAUSE, StatusWriter
from tests.operator.clock import Clock
from tests.operator.fakekube import FakeKube


@pytest.fixture
def kube() -> FakeKube:
    kube = FakeKube()
    kube.add_namespace("team-a")
    return kube


@pytest.fixture
def writer(kube: FakeKube, clock: Clock) -> StatusWriter:
    return StatusWriter(kube, Objects())


def made(kube: FakeKube, name: str = "hello") -> Object:
    return kube.put(WORKFLOWS, "team-a", {"metadata": {"name": name}, "spec": {}})


def there(kube: FakeKube) -> dict[str, Any]:
    found = kube.find(WORKFLOWS, "team-a", "hello")
    assert found is not None
    status: dict[str, Any] = found["status"]
    return status


def status(reason: str = "Progressing", message: str = "", ready: str = "Unknown", **more: Any) -> dict[str, Any]:
    said = {"type": "Ready", "status": ready, "reason": reason, "message": message}
    return {"observedGeneration": 1, "conditions": [said], **more}


async def test_a_status_is_written_once(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    for _ in range(3):
        assert await writer.write(WORKFLOWS, obj, status(), urgent=True) == 0
    assert [str(write) for write in kube.writes] == ["patch status of workflows"]
    assert there(kube) == status()


async def test_what_the_object_says_already_is_not_written(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    obj["status"] = status()
    await writer.write(WORKFLOWS, obj, status(steps=[]), urgent=True)
    assert kube.writes == []


async def test_what_is_said_no_more_goes(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    await writer.write(WORKFLOWS, obj, status(run={"number": 1, "state": "Running"}, extra="x"), urgent=True)
    await writer.write(WORKFLOWS, obj, status(run={"number": 2}), urgent=True)
    assert there(kube) == status(run={"number": 2})


async def test_a_null_in_a_value_is_written_and_is_news(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    for value in (None, {"a": None, "b": [None]}, {"b": [None]}):
        said = status(outputs=[{"name": "o", "value": value}])
        await writer.write(WORKFLOWS, obj, said, urgent=True)
        assert there(kube) == said
    assert len(kube.writes) == 3


async def test_writes_of_one_object_are_a_second_apart_unless_they_are_urgent(
    kube: FakeKube, writer: StatusWriter, clock: Clock
) -> None:
    obj, other = made(kube), made(kube, "other")
    assert await writer.write(WORKFLOWS, obj, status(message="1"), urgent=False) == 0
    left = await writer.write(WORKFLOWS, obj, status(message="2"), urgent=False)
    assert 0 < left <= PAUSE
    assert await writer.write(WORKFLOWS, other, status(message="2"), urgent=False) == 0
    assert await writer.write(WORKFLOWS, obj, status(message="3"), urgent=True) == 0
    assert await writer.write(WORKFLOWS, obj, status(message="4"), urgent=False) > 0
    clock.advance(PAUSE)
    assert await writer.write(WORKFLOWS, obj, status(message="4"), urgent=False) == 0
    assert len(kube.writes) == 4
    assert there(kube) == status(message="4")


async def test_nothing_is_written_to_the_next_object_of_the_name(kube: FakeKube, writer: StatusWriter) -> None:
    old = made(kube)
    kube.remove(WORKFLOWS, "team-a", "hello")
    made(kube)
    assert await writer.write(WORKFLOWS, old, status("Succeeded", ready="True"), urgent=True) == 0
    assert there(kube) == {"observedGeneration": -1}
    assert kube.all(EVENTS) == []


async def test_an_object_that_is_gone_is_let_go(kube: FakeKube, writer: StatusWriter) -> None:
    old = made(kube)
    kube.remove(WORKFLOWS, "team-a", "hello")
    assert await writer.write(WORKFLOWS, old, status("Succeeded", ready="True"), urgent=True) == 0
    assert kube.all(EVENTS) == []


async def test_a_write_that_failed_is_made_again(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    kube.away = True
    with pytest.raises(ApiUnavailable):
        await writer.write(WORKFLOWS, obj, status(), urgent=False)
    kube.away = False
    assert await writer.write(WORKFLOWS, obj, status(), urgent=False) == 0
    assert there(kube) == status()


# ---- Events


async def test_an_event_tells_of_a_verdict_once(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    await writer.write(WORKFLOWS, obj, status("Succeeded", "run 1 succeeded", "True"), urgent=True)
    await writer.write(WORKFLOWS, obj, status("Succeeded", "run 1 succeeded", "True", run={"number": 1}), urgent=True)
    (event,) = kube.all(EVENTS)
    assert (event["type"], event["reason"], event["message"]) == ("Normal", "Succeeded", "run 1 succeeded")
    about = {key: event["involvedObject"][key] for key in ("kind", "name", "namespace", "uid", "apiVersion")}
    assert about == {
        "kind": "Workflow",
        "name": "hello",
        "namespace": "team-a",
        "uid": obj["metadata"]["uid"],
        "apiVersion": "pilothouse.dev/v1alpha1",
    }
    await writer.write(WORKFLOWS, obj, status("Succeeded", "run 2 succeeded", "True"), urgent=True)
    assert len(kube.all(EVENTS)) == 2


async def test_bad_news_is_a_warning(kube: FakeKube, writer: StatusWriter) -> None:
    await writer.write(WORKFLOWS, made(kube), status("Failed", "F-EXE", "False"), urgent=True)
    assert [(event["type"], event["reason"]) for event in kube.all(EVENTS)] == [("Warning", "Failed")]


@pytest.mark.parametrize("reason", ["Progressing", "Pending", "StoreUnavailable", "ReferenceNotFound", "Accepted"])
async def test_progress_is_no_event(kube: FakeKube, writer: StatusWriter, reason: str) -> None:
    await writer.write(WORKFLOWS, made(kube), status(reason), urgent=True)
    assert kube.all(EVENTS) == []


async def test_a_verdict_that_a_former_operator_told_is_not_told_again(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    obj["status"] = status("Succeeded", "run 1 succeeded", "True")
    await writer.write(WORKFLOWS, obj, status("Succeeded", "run 1 succeeded", "True", more=1), urgent=True)
    assert kube.all(EVENTS) == []


async def test_an_event_that_is_refused_is_no_failure(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    kube.admission.terminating.add("team-a")
    with pytest.raises(Refused):
        await kube.create(EVENTS, "team-a", {"metadata": {"name": "x"}})
    assert await writer.write(WORKFLOWS, obj, status("Failed", "", "False"), urgent=True) == 0
    assert there(kube) == status("Failed", "", "False")


async def test_the_longest_of_names_and_messages_make_a_valid_event(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube, "w" * 63)
    await writer.write(WORKFLOWS, obj, status("Failed", "x" * 5_000, "False"), urgent=True)
    (event,) = kube.all(EVENTS)
    assert len(event["message"]) <= 1024
    assert len(event["metadata"]["name"]) <= 253


# ---- what it remembers


async def test_it_remembers_what_the_watch_has_not_shown_yet(kube: FakeKube, writer: StatusWriter) -> None:
    obj = made(kube)
    await writer.write(WORKFLOWS, obj, status(), urgent=True)
    assert writer.before(obj) == status()
    assert writer.before(made(kube, "other")) == {"observedGeneration": -1}


async def test_it_remembers_nothing_for_ever(kube: FakeKube, writer: StatusWriter, clock: Clock) -> None:
    for number in range(50):
        await writer.write(WORKFLOWS, made(kube, f"w{number}"), status(), urgent=True)
    clock.advance(KEPT + 1)
    last = made(kube, "last")
    await writer.write(WORKFLOWS, last, status(), urgent=True)
    assert list(writer._written) == [last["metadata"]["uid"]]


async def test_what_is_given_is_left_as_it_is(kube: FakeKube, writer: StatusWriter) -> None:
    obj, said = made(kube), status()
    before = copy.deepcopy((obj, said))
    await writer.write(WORKFLOWS, obj, said, urgent=True)
    assert (obj, said) == before
