"""Every Pod that is made, of whatever kind: restricted, gated, named after its attempt, and the user's only where it
may be."""

import re
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse_operator.kube.resources import PODS
from pilothouse_operator.names import labels, pod_name
from pilothouse_operator.pods import GATE, GRACE
from tests.operator.admission import invalid
from tests.operator.attempts import GROUND, OWNER, agent_pod, attempt, command_pod, volumes_of
from tests.operator.podsecurity import containers, violations

IMAGE = "registry.example.com/app:1"
KEY = {"secretKeyRef": {"name": "keys", "key": "openai"}}
BLOCK: dict[str, Any] = {
    "resources": {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"example.com/gpu": 1}},
    "nodeSelector": {"disk": "ssd"},
    "tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {
        "nodeAffinity": {
            "required": [{"key": "zone", "operator": "In", "values": ["a", "b"]}],
            "preferred": [{"weight": 5, "match": [{"key": "fast", "operator": "Exists"}]}],
        },
        "podAntiAffinity": {
            "required": [{"labels": {"app": "db"}, "topologyKey": "kubernetes.io/hostname"}],
            "preferred": [{"weight": 1, "labels": {"app": "web"}, "topologyKey": "zone"}],
        },
    },
    "imagePullSecrets": [{"name": "pull"}],
    "env": [{"name": "TEAM", "value": "a $(HOME)"}],
    "volumes": [
        {"name": "work", "mountPath": "/scratch", "emptyDir": {"sizeLimit": "1Gi", "medium": "Memory"}},
        {"name": "tmp", "mountPath": "/config", "configMap": {"name": "c"}, "readOnly": True},
        {"name": "spec", "mountPath": "/secret", "secret": {"name": "s"}},
        {"name": "sockets", "mountPath": "/data", "persistentVolumeClaim": {"name": "d"}},
    ],
    "priorityClassName": "low",
    "runtimeClassName": "gvisor",
    "serviceAccountName": "builder",
}
ALL = {
    "a command": command_pod(),
    "a command with all": command_pod(BLOCK, env={"A": "1"}, files={"in/a.txt": "text"}, timeout=30.0, confined=True),
    "a user's image": command_pod(image=IMAGE),
    "a user's image with all": command_pod(BLOCK, image=IMAGE, files={"a": "text"}, timeout=30.0),
    "an agent": agent_pod(),
    "an agent with all": agent_pod(
        90.0,
        model={"provider": "OpenAI", "name": "m", "apiKeyFrom": KEY},
        tools=[{"builtin": "shell"}],
        pod=BLOCK,
        sandbox={"workspace": {"size": "5Gi"}},
    ),
}
every = pytest.mark.parametrize("pod", ALL.values(), ids=ALL.keys())


@every
def test_a_pod_is_restricted(pod: dict[str, Any]) -> None:
    assert violations(pod) == []


@every
def test_a_pod_cannot_run_until_its_row_knows_it(pod: dict[str, Any]) -> None:
    assert pod["spec"]["schedulingGates"] == [{"name": GATE}]


@every
def test_a_pod_has_no_token_of_the_api_server(pod: dict[str, Any]) -> None:
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert pod["spec"]["enableServiceLinks"] is False
    for volume in pod["spec"]["volumes"]:
        for source in volume.get("projected", {}).get("sources", []):
            assert source.get("serviceAccountToken", {"audience": "pilothouse-store"})["audience"] == "pilothouse-store"


@every
def test_a_pod_runs_once_and_ends_within_its_grace(pod: dict[str, Any]) -> None:
    assert pod["spec"]["restartPolicy"] == "Never"
    assert pod["spec"]["terminationGracePeriodSeconds"] == GRACE


@every
def test_a_pod_belongs_to_its_workflow_whose_deletion_waits_for_nobody(pod: dict[str, Any]) -> None:
    (owner,) = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Workflow", "hello", OWNER.uid)
    assert owner["apiVersion"] == "pilothouse.dev/v1alpha1"
    assert owner["controller"] is True
    assert owner["blockOwnerDeletion"] is False
    assert pod["metadata"]["namespace"] == "team-a"


@every
def test_a_pod_is_one_that_an_api_server_takes(pod: dict[str, Any]) -> None:
    assert invalid(PODS, pod) == ""
    names = {volume["name"] for volume in pod["spec"]["volumes"]}
    assert len(names) == len(pod["spec"]["volumes"])
    for container in containers(pod["spec"]):
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert len(mounts) == len(set(mounts))
        assert {mount["name"] for mount in container["volumeMounts"]} <= names


@every
def test_a_container_has_bounds(pod: dict[str, Any]) -> None:
    for container in containers(pod["spec"]):
        assert container["resources"]["requests"]
    for volume in pod["spec"]["volumes"]:
        if "emptyDir" in volume:
            assert volume["emptyDir"]["sizeLimit"]


def test_the_block_is_said_in_the_words_of_a_pod() -> None:
    spec = ALL["a command with all"]["spec"]
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["priorityClassName"] == "low"
    assert spec["runtimeClassName"] == "gvisor"
    assert spec["serviceAccountName"] == "builder"
    nodes, apart = spec["affinity"]["nodeAffinity"], spec["affinity"]["podAntiAffinity"]
    assert nodes["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]
    }
    assert nodes["preferredDuringSchedulingIgnoredDuringExecution"] == [
        {"weight": 5, "preference": {"matchExpressions": [{"key": "fast", "operator": "Exists"}]}}
    ]
    assert apart["requiredDuringSchedulingIgnoredDuringExecution"] == [
        {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    ]
    assert apart["preferredDuringSchedulingIgnoredDuringExecution"] == [
        {
            "weight": 1,
            "podAffinityTerm": {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"},
        }
    ]


def test_a_block_that_says_nothing_leaves_nothing_behind() -> None:
    spec = ALL["a command"]["spec"]
    assert not {"nodeSelector", "tolerations", "affinity", "serviceAccountName", "initContainers"} & spec.keys()


@pytest.mark.parametrize("name", ["a command with all", "a user's image with all", "an agent with all"])
def test_the_users_volumes_are_beside_ours_whatever_they_are_called(name: str) -> None:
    volumes = volumes_of(ALL[name])
    assert volumes["user-0"]["emptyDir"] == {"sizeLimit": "1Gi", "medium": "Memory"}
    assert volumes["user-1"]["configMap"] == {"name": "c"}
    assert volumes["user-2"]["secret"] == {"secretName": "s"}
    assert volumes["user-3"]["persistentVolumeClaim"] == {"claimName": "d"}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({}, {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}}),
        (
            {"requests": {"memory": "2Gi"}},
            {"requests": {"cpu": "50m", "memory": "2Gi"}, "limits": {}},
        ),
        (
            {"limits": {"memory": "32Mi", "cpu": "1"}},
            {"requests": {}, "limits": {"memory": "32Mi", "cpu": "1"}},
        ),
        (
            {"requests": {"cpu": 1}, "limits": {"cpu": 2}},
            {"requests": {"memory": "64Mi", "cpu": 1}, "limits": {"memory": "512Mi", "cpu": 2}},
        ),
    ],
)
def test_what_the_user_says_of_a_resource_replaces_all_that_we_say_of_it(
    block: dict[str, Any], expected: dict[str, Any]
) -> None:
    (main,) = command_pod({"resources": block})["spec"]["containers"]
    assert main["resources"] == expected


NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")


@given(step=st.text(), workflow=st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?", fullmatch=True))
def test_names_and_labels_are_valid_whatever_a_step_is_called(step: str, workflow: str) -> None:
    named = attempt(step)
    assert NAME.fullmatch(pod_name(workflow, named))
    for value in labels(UUID(int=7), workflow, named, "command").values():
        assert LABEL.fullmatch(value)


@given(first=st.text(max_size=40), second=st.text(max_size=40))
def test_two_attempts_never_share_a_name(first: str, second: str) -> None:
    names = {pod_name("w", attempt(first)), pod_name("w", attempt(second)), pod_name("w", attempt(first))}
    assert len(names) == 3


def test_an_attempt_has_one_name_for_ever() -> None:
    one = attempt("a", nonce="0123456789abcdef0123456789abcdef")
    assert pod_name("hello", one) == pod_name("hello", one) == "hello-a-0123456789ab"


def test_labels_say_whose_pod_it_is() -> None:
    one = attempt("a")
    assert labels(GROUND.installation, "hello", one, "command") == {
        "app.kubernetes.io/managed-by": "pilothouse",
        "pilothouse.dev/installation": str(UUID(int=7)),
        "pilothouse.dev/workflow": "hello",
        "pilothouse.dev/run": str(UUID(int=2)),
        "pilothouse.dev/step": "a",
        "pilothouse.dev/attempt": str(one.ref.attempt),
        "pilothouse.dev/role": "command",
    }
