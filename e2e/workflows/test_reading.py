"""Runs of the cluster as the command line reads them, by the rights of who asks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.accounts import LOGS, READ, Account
from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.workflow import Applied, agent, asks, light, shell, workflow

LARGE = 100_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("accounts")


@pytest.fixture(scope="module")
def mine(release: Release, kubectl: Kubectl, shared_namespace: str) -> Iterator[Kubectl]:
    """A namespace all of whose accounts may reach the gateway, which shows them nothing yet."""
    name = f"callers-{shared_namespace}"
    group = f"--group=system:serviceaccounts:{shared_namespace}"
    release.own("create", "rolebinding", name, "--role=pilothouse-gateway-caller", group)
    yield kubectl.within(shared_namespace)
    release.own("delete", "rolebinding", name)


def _steps(*last: str) -> list[dict[str, Any]]:
    return [
        shell("first", f"echo cast off; python3 -c \"print('x' * {LARGE})\""),
        asks("ask", "mate", needs=["first"]),
        shell("last", "; ".join(["echo at sea", *last]), needs=["ask"]),
    ]


@pytest.fixture(scope="module")
def voyage(mine: Kubectl, home: Applied) -> Applied:
    """A run of which two steps have ended, and their Pods are gone; the third one goes on."""
    applied = Applied.of(mine, workflow("voyage", *_steps("exec sleep 600")))
    until(lambda: _running(applied) == ["last"], "the last step alone has a Pod, and runs")
    return applied


@pytest.fixture(scope="module")
def home(mine: Kubectl) -> Applied:
    """A run that ends."""
    mine.apply(agent("mate", {"text": "Aye aye."}))
    return Applied.of(mine, workflow("home", *_steps()))


def _running(applied: Applied) -> list[str]:
    return [pod["metadata"]["labels"]["pilothouse.dev/step"] for pod in applied.pods() if "startTime" in pod["status"]]


@pytest.fixture(scope="module")
def reader(mine: Kubectl, folder: Path) -> Account:
    return Account.of(mine, "reader", folder, READ, LOGS)


def test_get_and_describe_tell_of_a_run_that_goes_on(reader: Account, voyage: Applied) -> None:
    namespace = voyage.kubectl.namespace or ""
    head, *lines = reader.reads("get", "-n", namespace).splitlines()
    assert head.split() == ["RUN", "STATE", "PROGRESS", "AGE", "TOOK"]
    assert ["voyage/1", "Running", "2/3"] in [line.split()[:3] for line in lines]
    told = json.loads(reader.reads("get", "voyage", "-o", "json", "-n", namespace))
    assert {step["path"]: step["state"] for step in told["steps"]} == {
        "first": "Succeeded",
        "ask": "Succeeded",
        "last": "Running",
    }
    described = reader.reads("describe", "voyage", "-n", namespace)
    assert all(word in described for word in ("first", "ask", "last", "Running", "Succeeded"))


def test_logs_show_steps_whose_pods_are_gone_and_one_that_runs(reader: Account, voyage: Applied) -> None:
    def whole() -> str | None:
        printed = reader.reads("logs", "voyage", "-n", voyage.kubectl.namespace or "")
        return printed if "at sea" in printed else None

    printed = until(whole, "the running step's output is shown", 60)
    assert "cast off" in printed
    assert "x" * LARGE in printed
    assert "Aye aye." in printed
    assert reader.reads("logs", "voyage", "last", "-n", voyage.kubectl.namespace or "").rstrip().endswith("at sea")


def test_events_tell_in_order_what_has_happened(reader: Account, voyage: Applied) -> None:
    printed = reader.reads("events", "voyage", "-n", voyage.kubectl.namespace or "")
    places = [printed.index(word) for word in ("RunStarted", "StepStarted", "StepSucceeded", "TurnRecorded")]
    assert places == sorted(places)


def test_who_lacks_a_right_is_told_which_and_sees_nothing(mine: Kubectl, voyage: Applied, folder: Path) -> None:
    namespace = mine.namespace or ""
    stranger = Account.of(mine, "stranger", folder)
    for words in (("get",), ("get", "voyage"), ("describe", "voyage"), ("logs", "voyage"), ("events", "voyage")):
        said = stranger.refused(*words, "-n", namespace)
        assert f"system:serviceaccount:{namespace}:stranger may not" in said
        assert "kubectl auth can-i" in said
    deaf = Account.of(mine, "deaf", folder, READ)
    assert "voyage/1" in deaf.reads("get", "-n", namespace)
    assert "may not get pods/log" in deaf.refused("logs", "voyage", "-n", namespace)


def test_a_run_of_another_namespace_is_refused(
    reader: Account, voyage: Applied, kubectl: Kubectl, namespace: str, folder: Path
) -> None:
    """Where the caller has no rights, and where it has all but that run is of another namespace."""
    other = kubectl.within(namespace)
    Applied.of(other, workflow("secret", light("a"))).finished()
    for words in (("get",), ("get", "secret"), ("logs", "secret")):
        assert "may not" in reader.refused(*words, "-n", namespace)
    binding = "reader-of-both"
    account = f"--serviceaccount={voyage.kubectl.namespace}:reader"
    other("create", "rolebinding", binding, "--clusterrole=pilothouse-viewer", account)
    until(lambda: "secret/1" in reader.pilothouse("get", "-n", namespace).stdout or None, "the right is there", 30)
    run = voyage.object()["status"]["run"]["id"]
    assert "there is no run" in reader.refused("get", run, "-n", namespace)
    assert "there is no run" in reader.refused("get", "voyage", "-n", namespace)


def test_who_may_not_reach_the_gateway_is_told_how_to(
    kubectl: Kubectl, namespace: str, folder: Path, release: Release
) -> None:
    outsider = Account.of(kubectl.within(namespace), "outsider", folder, READ)
    assert "services/proxy" in outsider.refused("get", "-n", namespace)


def test_a_run_that_has_ended_is_read_when_its_pods_are_gone(reader: Account, home: Applied) -> None:
    namespace = home.kubectl.namespace or ""
    home.finished()
    until(lambda: not home.pods(), "its Pods are gone", 60)
    assert "home/1 Succeeded 3/3" in " ".join(reader.reads("get", "-n", namespace).split())
    printed = reader.reads("logs", "home", "-n", namespace)
    assert all(words in printed for words in ("cast off", "x" * LARGE, "Aye aye.", "at sea"))
    assert "RunSucceeded" in reader.reads("events", "home", "-n", namespace)
