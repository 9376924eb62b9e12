"""What the watches have shown: our objects and our Pods, as they were last seen."""

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import Resource


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """An object of ours, as the work queue knows it."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(slots=True)
class Objects:
    """A hint, never the truth: what is missing here may be there, and what is here may be gone."""

    _by_key: dict[Key, Object] = field(default_factory=dict)
    _pods_of: defaultdict[str, dict[Key, Object]] = field(default_factory=lambda: defaultdict(dict))
    _last: dict[str, float] = field(default_factory=dict)

    def see(self, resource: Resource, change: str | None, body: Mapping[str, Any]) -> bool:
        """Takes in an event of a watch; whether it is news. `change` is `DELETED`, another word, or None from a list.
        Events of two objects of one name may come in any order, so an older one changes nothing."""
        obj = dict(body)
        key = key_of(resource, obj)
        known = self._by_key.get(key)
        self._last[resource.kind] = time.monotonic()
        if _newer(obj, known):
            self.correct(resource, key, None if change == "DELETED" else obj)
        return change == "DELETED" or known is None or _version(obj) != _version(known)

    def wrote_status(self, resource: Resource, before: Object, after: Object) -> None:
        """Takes in the object as it is after a write of its status. An event that shows no more than that is no news;
        where something else has changed as well, it still is."""
        if _without_status(before) == _without_status(after):
            self.correct(resource, key_of(resource, after), after)

    def correct(self, resource: Resource, key: Key, obj: Object | None) -> None:
        """Takes in the object as the API server has it now; None where there is none."""
        self.forget(key)
        if obj is not None:
            self._by_key[key] = obj
            for uid in _owners(obj) if resource.kind == "Pod" else ():
                self._pods_of[uid][key] = obj

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._by_key.get(Key(kind, namespace, name))

    def all(self, kind: str, namespace: str | None = None) -> Iterable[Object]:
        return [obj for key, obj in self._by_key.items() if key.kind == kind and namespace in (None, key.namespace)]

    def pods_of(self, uid: str) -> Iterable[Object]:
        """The Pods whose owner has that UID."""
        return list(self._pods_of.get(uid, {}).values())

    def forget(self, key: Key, uid: str | None = None) -> None:
        """`uid`: only the object with that one, not another of its name."""
        if uid is not None and self._by_key.get(key, {}).get("metadata", {}).get("uid") != uid:
            return
        gone = self._by_key.pop(key, None)
        for uid in _owners(gone) if gone and key.kind == "Pod" else ():
            self._pods_of[uid].pop(key, None)
            if not self._pods_of[uid]:
                del self._pods_of[uid]

    def ages(self) -> Mapping[str, float]:
        """Seconds since the last event, by kind."""
        now = time.monotonic()
        return {kind: now - last for kind, last in self._last.items()}


def key_of(resource: Resource, obj: Mapping[str, Any]) -> Key:
    return Key(resource.kind, obj["metadata"]["namespace"], obj["metadata"]["name"])


def _owners(pod: Mapping[str, Any]) -> Iterable[str]:
    return [owner["uid"] for owner in pod["metadata"].get("ownerReferences", [])]


def _version(obj: Object) -> tuple[str, str]:
    return obj["metadata"]["uid"], obj["metadata"].get("resourceVersion", "")


def _without_status(obj: Object) -> Object:
    metadata = {name: value for name, value in obj["metadata"].items() if name != "resourceVersion"}
    managers = [entry for entry in metadata.get("managedFields", []) if entry.get("subresource") != "status"]
    rest = {name: value for name, value in obj.items() if name != "status"}
    return {**rest, "metadata": {**metadata, "managedFields": managers}}


def _newer(obj: Object, known: Object | None) -> bool:
    """Whether it is not older than what is known, as far as that can be told."""
    if known is None:
        return True
    versions = (obj["metadata"].get("resourceVersion", ""), known["metadata"].get("resourceVersion", ""))
    return not all(version.isdecimal() for version in versions) or int(versions[0]) >= int(versions[1])
