"""Every Pod of the chart meets Pod Security "restricted" and the rules of our own beyond it."""

import re

import pytest

from e2e.chart.rendering import Object, Render, containers
from pilothouse.gateway import server

EVERYTHING = ("namespaces.served={team-a}", "imagePullSecrets[0].name=pull", "scheduling.priorityClassName=high")
PODS = Render.of(*EVERYTHING).pods()

ALLOWED_VOLUMES = {"configMap", "emptyDir", "projected", "secret", "persistentVolumeClaim"}


@pytest.fixture(params=sorted(PODS), ids=lambda name: re.sub(r"-[0-9a-f]{10}$", "", name))
def pod(request: pytest.FixtureRequest) -> Object:
    return PODS[request.param]


def test_no_pod_is_missing() -> None:
    assert sorted(re.sub(r"-[0-9a-f]{10}$", "", name) for name in PODS) == [
        "Deployment/pilothouse-gateway",
        "Deployment/pilothouse-operator",
        "Job/pilothouse-check",
        "Job/pilothouse-migrate",
        "StatefulSet/pilothouse-postgres",
    ]


def test_it_is_restricted(pod: Object) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] > 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
    assert all(set(volume) - {"name"} <= ALLOWED_VOLUMES for volume in pod["volumes"])
    for container in containers(pod):
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not {"privileged", "procMount", "seccompProfile", "runAsUser", "runAsNonRoot"} & set(context)
        assert not any("hostPort" in port for port in container.get("ports", []))


def test_it_writes_only_where_it_must_and_uses_only_what_it_may(pod: Object) -> None:
    for container in containers(pod):
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
        mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
        writable = {path for path, read_only in mounts.items() if not read_only}
        assert "/tmp" in writable  # noqa: S108
        assert writable <= {"/tmp", "/var/lib/pilothouse"}  # noqa: S108
    bounded = [volume["emptyDir"] for volume in pod["volumes"] if "emptyDir" in volume]
    assert all("sizeLimit" in each for each in bounded)


def test_it_is_told_nothing_that_it_did_not_ask_for(pod: Object) -> None:
    assert pod["enableServiceLinks"] is False
    assert pod["automountServiceAccountToken"] is ("serviceAccountName" in pod), "a token goes with an account of ours"
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert pod["priorityClassName"] == "high"


def test_each_account_is_of_one_pod_and_makes_no_token_by_itself() -> None:
    render = Render.of()
    used = sorted(pod["serviceAccountName"] for pod in render.pods().values() if "serviceAccountName" in pod)
    assert used == sorted(render.names("ServiceAccount"))
    assert all(each["automountServiceAccountToken"] is False for each in render.kind("ServiceAccount"))


def test_the_operator_is_never_there_twice_and_the_gateway_never_away() -> None:
    render = Render.of()
    operator, gateway = (render.one("Deployment", f"pilothouse-{name}")["spec"] for name in ("operator", "gateway"))
    assert (operator["replicas"], operator["strategy"]) == (1, {"type": "Recreate"})
    assert gateway["replicas"] == 2
    assert gateway["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    [budget] = render.kind("PodDisruptionBudget")
    assert budget["spec"]["selector"] == gateway["selector"]


def test_services_lead_to_ports_of_the_pods_that_they_select() -> None:
    render = Render.of()
    makers = render.kind("Deployment", "StatefulSet")
    for service in render.kind("Service"):
        [template] = [
            maker["spec"]["template"]
            for maker in makers
            if service["spec"]["selector"].items() <= maker["spec"]["template"]["metadata"]["labels"].items()
        ]
        named = {port["name"] for container in containers(template["spec"]) for port in container["ports"]}
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= named


def test_a_gateway_serves_until_all_know_that_it_goes_and_then_ends_what_is_under_way() -> None:
    pod = PODS["Deployment/pilothouse-gateway"]
    [gateway] = containers(pod)
    told = gateway["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert told >= 5
    assert told + server._GRACE + server._FAREWELL < pod["terminationGracePeriodSeconds"]
