"""A Kubernetes API server in memory: the semantics that an operator's correctness hangs on, and none besides.

`tests/operator/conformance.py` holds it and the client of a real API server to the same behaviour.
"""

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

from pilothouse.api.base import GROUP
from pilothouse_operator.kube.errors import AlreadyExists, ApiUnavailable, Changed, Refused
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import NAMESPACES, PODS, Resource
from tests.operator.admission import Admission, invalid

Place = tuple[Resource, str, str]
"""Resource, namespace (empty for none) and name."""

Watch = Callable[[Resource, str, Object], None]
"""Is told of each change: `ADDED`, `MODIFIED` or `DELETED`, and the object as it is then."""


@dataclass(frozen=True, slots=True)
class Write:
    """A call that was made to change something, whatever came of it."""

    verb: str
    resource: Resource
    name: str
    body: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.verb} {self.resource.plural}"


@dataclass
class FakeKube:
    """Implements the port `Kube`. `now` gives the time in seconds since the epoch; while `away`, nobody is served."""

    now: Callable[[], float] = lambda: datetime.now(UTC).timestamp()
    admission: Admission = field(default_factory=Admission)
    writes: list[Write] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    logs: dict[tuple[str, str, str], bytes] = field(default_factory=dict)
    away: bool = False
    watch: Watch = lambda *_: None
    _objects: dict[Place, Object] = field(default_factory=dict)
    _versions: "itertools.count[int]" = field(default_factory=lambda: itertools.count(100))

    # ---- the port

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        self._read("get", resource, namespace)
        return copy.deepcopy(self._objects.get((resource, namespace or "", name)))

    async def list(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        self._read("list", resource, namespace)
        wanted = dict(pair.split("=") for pair in labels.split(",") if pair)
        found = self._all(resource, namespace)
        return [obj for obj in found if wanted.items() <= obj["metadata"].get("labels", {}).items()]

    async def names(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        return [{"metadata": obj["metadata"]} for obj in await self.list(resource, namespace, labels)]

    async def create(self, resource: Resource, namespace: str, body: Mapping[str, Any]) -> Object:
        obj: Object = copy.deepcopy(dict(body))
        name = obj["metadata"]["name"]
        self._write("create", resource, namespace, name, body)
        place = (resource, namespace, name)
        if resource.namespaced and not self.namespace(namespace):
            raise Refused(f'namespaces "{namespace}" not found')
        if place in self._objects:
            raise AlreadyExists(f'{resource.plural} "{name}" already exists')
        self.admission.admit(resource, self.namespace(namespace), obj, self._all(resource, namespace))
        return self.put(resource, namespace, obj)

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Mapping[str, Any]) -> Object | None:
        self._write("patch", resource, namespace, name, patch)
        return self._change((resource, namespace, name), patch, lambda known: _patched(resource, known, patch))

    async def set_status(
        self, resource: Resource, namespace: str, name: str, uid: str, status: Mapping[str, Any]
    ) -> Object | None:
        self._write("patch", resource, namespace, name, status, "status")
        whole = copy.deepcopy(dict(status))
        return self._change(
            (resource, namespace, name), {"metadata": {"uid": uid}}, lambda known: {**known, "status": whole}
        )

    def _change(self, place: Place, conditions: Mapping[str, Any], edit: Callable[[Object], Object]) -> Object | None:
        resource, _, name = place
        if (known := self._objects.get(place)) is None:
            return None
        given, there = conditions.get("metadata", {}), known["metadata"]
        if any(field in given and given[field] != there[field] for field in ("uid", "resourceVersion")):
            raise Changed(f"Precondition failed: {resource.plural} {name} is another object, or has changed")
        changed = edit(known)
        if wrong := invalid(resource, changed, known):
            raise Refused(f'{resource.kind} "{name}" is invalid: {wrong}')
        return self._keep(place, changed, known)

    async def delete(
        self, resource: Resource, namespace: str, name: str, uid: str, version: str = "", *, at_once: bool = False
    ) -> bool:
        self._write("delete", resource, namespace, name, {"uid": uid, "version": version})
        known = self._objects.get((resource, namespace, name))
        if known is None or known["metadata"]["uid"] != uid:
            return known is None or not version
        if version and known["metadata"]["resourceVersion"] != version:
            return False
        if resource is PODS and _lingers(known) and not at_once:
            self._mark((resource, namespace, name), known)
        else:
            self.remove(resource, namespace, name)
        return True

    async def log(self, namespace: str, pod: str, container: str) -> bytes | None:
        self._read("log", PODS, namespace)
        if (there := self._objects.get((PODS, namespace, pod))) is None:
            return None
        return self.logs.get((namespace, pod, container)) if "nodeName" in there["spec"] else b""

    # ---- what others do on the cluster

    def namespace(self, name: str) -> Object | None:
        return self._objects.get((NAMESPACES, "", name))

    def add_namespace(self, name: str, labels: Mapping[str, str] | None = None) -> Object:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}}
        return self.put(NAMESPACES, "", body)

    def put(self, resource: Resource, namespace: str, body: Mapping[str, Any]) -> Object:
        """Creates the object, whatever admission would say."""
        obj = _new(resource, namespace, body, self._moment())
        if wrong := invalid(resource, obj):
            raise Refused(f'{resource.kind} "{obj["metadata"]["name"]}" is invalid: {wrong}')
        return self._keep((resource, namespace, obj["metadata"]["name"]), obj)

    def find(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """The object, as nobody has to be asked for it."""
        return copy.deepcopy(self._objects.get((resource, namespace, name)))

    def all(self, resource: Resource, namespace: str | None = None) -> Sequence[Object]:
        return self._all(resource, namespace)

    def change(self, resource: Resource, namespace: str, name: str, edit: Callable[[Object], None]) -> Object:
        """Changes the object as somebody else does, past all rules."""
        known = self._objects[resource, namespace, name]
        edit(changed := copy.deepcopy(known))
        return self._keep((resource, namespace, name), changed, known)

    def remove(self, resource: Resource, namespace: str, name: str) -> Object:
        """The object is gone, at once and for good."""
        gone = self._objects.pop((resource, namespace, name))
        gone = {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(next(self._versions))}}
        self.watch(resource, "DELETED", copy.deepcopy(gone))
        return gone

    def remove_namespace(self, name: str) -> None:
        """All that is in it goes first."""
        for resource, namespace, each in [place for place in self._objects if place[1] == name]:
            self.remove(resource, namespace, each)
        self.remove(NAMESPACES, "", name)

    def collect(self) -> None:
        """Deletes what belongs to objects that are gone, as the garbage collector does."""
        uids = {obj["metadata"]["uid"] for obj in self._objects.values()}
        for place, obj in list(self._objects.items()):
            owners = {owner["uid"] for owner in obj["metadata"].get("ownerReferences", [])}
            if owners and not owners & uids:
                self._mark(place, obj) if place[0] is PODS and _lingers(obj) else self.remove(*place)

    # ----

    def _all(self, resource: Resource, namespace: str | None) -> Sequence[Object]:
        places = [place for place in self._objects if place[0] == resource and namespace in (None, place[1])]
        return [copy.deepcopy(self._objects[place]) for place in sorted(places, key=lambda place: place[1:])]

    def _read(self, verb: str, resource: Resource, namespace: str | None) -> None:
        self.reads.append(f"{verb} {resource.plural}")
        self._serve(verb, resource, namespace or "")

    def _write(
        self, verb: str, resource: Resource, namespace: str, name: str, body: Mapping[str, Any], sub: str = ""
    ) -> None:
        self.writes.append(Write(f"{verb} status of" if sub else verb, resource, name, copy.deepcopy(dict(body))))
        self._serve(verb, resource, namespace)

    def _serve(self, verb: str, resource: Resource, namespace: str) -> None:
        if self.away:
            raise ApiUnavailable("the API server cannot be reached")
        self.admission.authorize(verb, resource, namespace)

    def _mark(self, place: Place, known: Object) -> None:
        """Marks a Pod that a kubelet has yet to end."""
        if "deletionTimestamp" not in known["metadata"]:
            self._keep(place, {**known, "metadata": {**known["metadata"], "deletionTimestamp": self._moment()}}, known)

    def _keep(self, place: Place, obj: Object, known: Object | None = None) -> Object:
        if known is not None and obj == known:
            return copy.deepcopy(known)
        metadata = {**obj["metadata"], "resourceVersion": str(next(self._versions))}
        if "generation" in metadata and known is not None and obj["spec"] != known["spec"]:
            metadata["generation"] += 1
        self._objects[place] = {**obj, "metadata": metadata}
        self.watch(place[0], "ADDED" if known is None else "MODIFIED", copy.deepcopy(self._objects[place]))
        return copy.deepcopy(self._objects[place])

    def _moment(self) -> str:
        return datetime.fromtimestamp(self.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def merged(target: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, Mapping):
        return copy.deepcopy(patch)
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _new(resource: Resource, namespace: str, body: Mapping[str, Any], now: str) -> Object:
    obj: Object = copy.deepcopy(dict(body))
    obj["metadata"] |= {"uid": str(uuid4()), "creationTimestamp": now}
    obj["metadata"] |= {"namespace": namespace} if namespace else {}
    if resource is PODS:
        gated = obj["spec"].get("schedulingGates")
        reason = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
        obj["status"] = {"phase": "Pending", "conditions": [reason] if gated else []}
    elif _has_status(resource):
        obj["metadata"]["generation"] = 1
        obj["status"] = {"observedGeneration": -1} if resource.group == GROUP else {}
    return obj


def _has_status(resource: Resource) -> bool:
    """Whether its status is a subresource, and its spec is counted by `generation`."""
    return resource.group in (GROUP, "networking.k8s.io")


def _patched(resource: Resource, known: Object, patch: Mapping[str, Any]) -> Object:
    """A status is written at its own place, and nowhere else."""
    separate = resource is PODS or _has_status(resource)
    result: Object = merged(known, {key: part for key, part in patch.items() if not (separate and key == "status")})
    if resource is PODS and not result["spec"].get("schedulingGates"):
        result["spec"].pop("schedulingGates", None)
    return result


def _lingers(pod: Object) -> bool:
    """A Pod that a node has taken is ended by its kubelet first."""
    return "nodeName" in pod["spec"] and pod["status"]["phase"] not in ("Succeeded", "Failed")
