"""What every implementation of the port `Kube` does, and above all how it says no.

Run over a cluster in memory by `test_fakekube.py`, over a real API server by `e2e/kube/test_conformance.py`: each gives
the fixture `place`.
"""

from typing import Any, Protocol

import pytest

from pilothouse_operator.kube.errors import AlreadyExists, Changed, Refused
from pilothouse_operator.kube.port import Kube, Object
from pilothouse_operator.kube.resources import CONFIG_MAPS, NAMESPACES, PODS, Resource
from pilothouse_operator.pods import GATE

INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", "Ingress")
"""A kind with a status that nobody else writes, as long as no ingress controller runs."""


class Place(Protocol):
    """A namespace that admits restricted Pods only, as somebody sees it who may do all in it."""

    kube: Kube
    namespace: str

    async def fill(self) -> None:
        """A quota has no room for another Pod."""
        ...

    async def powerless(self) -> Kube:
        """The API as somebody sees it who may do nothing here."""
        ...

    async def terminate(self) -> None:
        """The namespace is being deleted, and stays so for the time of the test."""
        ...


def config_map(name: str = "c", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def ingress() -> dict[str, Any]:
    spec = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "i"}, "spec": spec}


def gated(name: str = "p", **spec: Any) -> dict[str, Any]:
    """A restricted Pod that waits to be let run."""
    own = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    body = {
        "schedulingGates": [{"name": GATE}],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10002, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "main", "image": "registry.example.com/x", "securityContext": own}],
        **spec,
    }
    metadata = {"name": name, "labels": {"team": "a"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body}


def uid(obj: Object) -> str:
    return str(obj["metadata"]["uid"])


def version(obj: Object) -> str:
    return str(obj["metadata"]["resourceVersion"])


class KubeConformance:
    """The suite. Its tests run in the order of the port's methods."""

    async def test_an_object_is_as_it_was_created(self, place: Place) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map(a="1"))
        found = await place.kube.get(CONFIG_MAPS, place.namespace, "c")
        assert found == made
        assert made["data"] == {"a": "1"}
        assert made["metadata"]["namespace"] == place.namespace
        assert made["metadata"]["creationTimestamp"].endswith("Z")
        assert version(made).isdecimal()

    async def test_what_is_not_there_is_none(self, place: Place) -> None:
        assert await place.kube.get(CONFIG_MAPS, place.namespace, "none") is None
        assert await place.kube.get(NAMESPACES, None, "there-is-no-such-namespace") is None
        assert await place.kube.patch(CONFIG_MAPS, place.namespace, "none", {"data": {"a": "1"}}) is None
        assert await place.kube.delete(CONFIG_MAPS, place.namespace, "none", "u") is True

    async def test_a_namespace_has_a_uid(self, place: Place) -> None:
        found = await place.kube.get(NAMESPACES, None, place.namespace)
        assert found is not None
        assert len(uid(found)) == 36

    async def test_objects_are_found_by_their_labels(self, place: Place) -> None:
        await place.kube.create(PODS, place.namespace, gated("p1"))
        other = gated("p2")
        other["metadata"]["labels"] = {"team": "b"}
        await place.kube.create(PODS, place.namespace, other)
        found = await place.kube.list(PODS, place.namespace, "team=b")
        assert [pod["metadata"]["name"] for pod in found] == ["p2"]
        assert found[0]["spec"]["containers"][0]["name"] == "main"
        names = await place.kube.names(PODS, place.namespace)
        assert [pod["metadata"]["name"] for pod in names] == ["p1", "p2"]
        assert all(uid(pod) and "spec" not in pod for pod in names)
        assert [uid(pod) for pod in await place.kube.names(PODS, place.namespace, "team=b")] == [uid(found[0])]

    async def test_a_name_is_taken_once(self, place: Place) -> None:
        await place.kube.create(CONFIG_MAPS, place.namespace, config_map())
        with pytest.raises(AlreadyExists):
            await place.kube.create(CONFIG_MAPS, place.namespace, config_map(a="2"))

    async def test_nothing_is_made_where_there_is_no_namespace(self, place: Place) -> None:
        with pytest.raises(Refused) as refusal:
            await place.kube.create(CONFIG_MAPS, "there-is-no-such-namespace", config_map())
        assert refusal.value.terminating

    async def test_a_patch_merges_and_null_takes_away(self, place: Place) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map(a="1", b="1"))
        patch = {"metadata": {"uid": uid(made)}, "data": {"a": None, "c": "3"}}
        found = await place.kube.patch(CONFIG_MAPS, place.namespace, "c", patch)
        assert found is not None
        assert found["data"] == {"b": "1", "c": "3"}
        assert int(version(found)) > int(version(made))

    async def test_a_patch_that_changes_nothing_is_no_change(self, place: Place) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map(a="1"))
        found = await place.kube.patch(CONFIG_MAPS, place.namespace, "c", {"data": {"a": "1", "b": None}})
        assert found == made

    @pytest.mark.parametrize("field", ["uid", "resourceVersion"])
    async def test_a_patch_for_another_object_is_refused(self, place: Place, field: str) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map(a="1"))
        other = {"uid": "00000000-0000-4000-8000-000000000000", "resourceVersion": "1"}[field]
        with pytest.raises(Changed):
            await place.kube.patch(CONFIG_MAPS, place.namespace, "c", {"metadata": {field: other}, "data": {"a": "2"}})
        assert await place.kube.get(CONFIG_MAPS, place.namespace, "c") == made

    async def test_a_status_and_a_spec_are_written_each_at_its_own_place(self, place: Place) -> None:
        made = await place.kube.create(INGRESSES, place.namespace, ingress())
        assert made["metadata"]["generation"] == 1
        status = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        found = await place.kube.set_status(INGRESSES, place.namespace, "i", uid(made), status)
        assert found is not None
        assert found["status"] == status
        assert found["spec"] == made["spec"]
        assert found["metadata"]["generation"] == 1
        other = {"status": {"loadBalancer": None}, "spec": {"ingressClassName": "none"}}
        found = await place.kube.patch(INGRESSES, place.namespace, "i", other)
        assert found is not None
        assert found["status"] == status
        assert found["spec"]["ingressClassName"] == "none"
        assert found["metadata"]["generation"] == 2

    async def test_a_status_is_not_written_to_another_object(self, place: Place) -> None:
        await place.kube.create(INGRESSES, place.namespace, ingress())
        other = "00000000-0000-4000-8000-000000000000"
        with pytest.raises(Changed):
            await place.kube.set_status(INGRESSES, place.namespace, "i", other, {"loadBalancer": {}})

    async def test_a_status_takes_the_place_of_the_one_before(self, place: Place) -> None:
        made = await place.kube.create(INGRESSES, place.namespace, ingress())
        statuses: list[dict[str, Any]] = [{"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}, {"loadBalancer": {}}]
        for status in statuses:
            found = await place.kube.set_status(INGRESSES, place.namespace, "i", uid(made), status)
            assert found is not None
            assert found["status"] == status
        assert await place.kube.set_status(INGRESSES, place.namespace, "none", uid(made), {}) is None

    async def test_an_object_is_deleted_only_if_it_is_the_one(self, place: Place) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map())
        assert await place.kube.delete(CONFIG_MAPS, place.namespace, "c", "00000000-0000-4000-8000-000000000000")
        assert await place.kube.get(CONFIG_MAPS, place.namespace, "c") == made
        assert await place.kube.delete(CONFIG_MAPS, place.namespace, "c", uid(made))
        assert await place.kube.get(CONFIG_MAPS, place.namespace, "c") is None

    async def test_an_object_is_deleted_only_if_it_has_not_changed(self, place: Place) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map())
        changed = await place.kube.patch(CONFIG_MAPS, place.namespace, "c", {"data": {"a": "1"}})
        assert changed is not None
        assert await place.kube.delete(CONFIG_MAPS, place.namespace, "c", uid(made), version(made)) is False
        assert await place.kube.get(CONFIG_MAPS, place.namespace, "c") == changed
        assert await place.kube.delete(CONFIG_MAPS, place.namespace, "c", uid(made), version(changed)) is True
        assert await place.kube.get(CONFIG_MAPS, place.namespace, "c") is None

    # ---- Pods

    async def test_a_gated_pod_waits_and_is_let_go_once(self, place: Place) -> None:
        made = await place.kube.create(PODS, place.namespace, gated())
        assert made["status"]["phase"] == "Pending"
        (condition,) = [each for each in made["status"]["conditions"] if each["type"] == "PodScheduled"]
        assert condition["reason"] == "SchedulingGated"
        free = {"metadata": {"uid": uid(made)}, "spec": {"schedulingGates": []}}
        found = await place.kube.patch(PODS, place.namespace, "p", free)
        assert found is not None
        assert "schedulingGates" not in found["spec"]
        with pytest.raises(Refused) as refusal:
            await place.kube.patch(PODS, place.namespace, "p", {"spec": {"schedulingGates": [{"name": GATE}]}})
        assert not refusal.value.forbidden

    async def test_a_pod_that_no_node_has_taken_is_gone_when_it_is_deleted(self, place: Place) -> None:
        made = await place.kube.create(PODS, place.namespace, gated())
        assert await place.kube.delete(PODS, place.namespace, "p", uid(made), version(made)) is True
        assert await place.kube.get(PODS, place.namespace, "p") is None

    async def test_a_pod_that_a_node_has_stays_until_it_is_ended_unless_it_is_to_go_at_once(self, place: Place) -> None:
        pod = gated(nodeName="there-is-no-such-node")
        del pod["spec"]["schedulingGates"]
        made = await place.kube.create(PODS, place.namespace, pod)
        assert await place.kube.delete(PODS, place.namespace, "p", uid(made)) is True
        found = await place.kube.get(PODS, place.namespace, "p")
        assert found is not None
        assert "deletionTimestamp" in found["metadata"]
        assert await place.kube.delete(PODS, place.namespace, "p", uid(made), at_once=True) is True
        assert await place.kube.get(PODS, place.namespace, "p") is None

    async def test_of_a_pod_little_can_be_changed(self, place: Place) -> None:
        await place.kube.create(PODS, place.namespace, gated())
        patch = {"metadata": {"annotations": {"a": "1"}}, "spec": {"activeDeadlineSeconds": 5}}
        found = await place.kube.patch(PODS, place.namespace, "p", patch)
        assert found is not None
        assert found["metadata"]["annotations"] == {"a": "1"}
        assert found["spec"]["activeDeadlineSeconds"] == 5
        for spec in ({"activeDeadlineSeconds": 6}, {"hostname": "other"}):
            with pytest.raises(Refused):
                await place.kube.patch(PODS, place.namespace, "p", {"spec": spec})

    async def test_a_pod_that_no_node_has_taken_has_an_empty_log_and_no_pod_has_none(self, place: Place) -> None:
        await place.kube.create(PODS, place.namespace, gated())
        assert await place.kube.log(place.namespace, "p", "main") == b""
        assert await place.kube.log(place.namespace, "none", "main") is None

    # ---- refusals

    async def test_an_invalid_object_is_refused_but_not_forbidden(self, place: Place) -> None:
        pod = gated()
        pod["metadata"]["labels"] = {"team": "no good"}
        with pytest.raises(Refused, match=r"metadata\.labels: Invalid value") as refusal:
            await place.kube.create(PODS, place.namespace, pod)
        assert not refusal.value.forbidden

    async def test_annotations_have_a_limit(self, place: Place) -> None:
        pod = gated()
        pod["metadata"]["annotations"] = {"a": "x" * 256 * 1024}
        with pytest.raises(Refused, match=r"metadata\.annotations: Too long"):
            await place.kube.create(PODS, place.namespace, pod)

    async def test_a_pod_that_is_not_restricted_is_forbidden(self, place: Place) -> None:
        with pytest.raises(Refused, match='violates PodSecurity "restricted:latest"') as refusal:
            await place.kube.create(PODS, place.namespace, gated(hostNetwork=True))
        assert refusal.value.forbidden
        assert not any((refusal.value.by_quota, refusal.value.lacks_rights, refusal.value.terminating))

    async def test_a_quota_without_room_says_so(self, place: Place) -> None:
        await place.fill()
        with pytest.raises(Refused) as refusal:
            await place.kube.create(PODS, place.namespace, gated())
        assert refusal.value.by_quota

    async def test_a_service_account_that_is_not_there_is_named(self, place: Place) -> None:
        with pytest.raises(Refused) as refusal:
            await place.kube.create(PODS, place.namespace, gated(serviceAccountName="nobody"))
        assert refusal.value.lacks_account

    async def test_who_lacks_the_right_is_told_so(self, place: Place) -> None:
        made = await place.kube.create(CONFIG_MAPS, place.namespace, config_map())
        powerless = await place.powerless()
        for call in (
            powerless.create(PODS, place.namespace, gated()),
            powerless.patch(CONFIG_MAPS, place.namespace, "c", {"data": {"a": "1"}}),
            powerless.delete(CONFIG_MAPS, place.namespace, "c", uid(made)),
            powerless.get(CONFIG_MAPS, place.namespace, "c"),
            powerless.names(PODS, place.namespace),
            powerless.log(place.namespace, "p", "main"),
        ):
            with pytest.raises(Refused) as refusal:
                await call
            assert refusal.value.lacks_rights
            assert not refusal.value.by_quota

    async def test_nothing_new_is_made_in_a_namespace_that_is_being_deleted(self, place: Place) -> None:
        await place.terminate()
        for resource, body in ((PODS, gated()), (CONFIG_MAPS, config_map())):
            with pytest.raises(Refused) as refusal:
                await place.kube.create(resource, place.namespace, body)
            assert refusal.value.terminating
