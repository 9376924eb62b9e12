"""The port through which the operator reads and writes objects. They travel as plain JSON."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from pilothouse_operator.kube.resources import Resource

Object = dict[str, Any]
"""An object as the API gives it."""


class Kube(Protocol):
    """Every call raises ApiUnavailable in an outage and Refused where the API server says no."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        """The object as it is now; None where there is none."""
        ...

    async def list(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        """The objects of a namespace, or of all; `labels` is a selector."""
        ...

    async def names(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        """As `list`, of each object its metadata alone."""
        ...

    async def create(self, resource: Resource, namespace: str, body: Mapping[str, Any]) -> Object:
        """Creates the object. Raises AlreadyExists."""
        ...

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Mapping[str, Any]) -> Object | None:
        """Merges the patch into the object; None where there is none. A patch that names `metadata.uid` of another
        object raises Changed."""
        ...

    async def set_status(
        self, resource: Resource, namespace: str, name: str, uid: str, status: Mapping[str, Any]
    ) -> Object | None:
        """Puts the status in the place of the one before, whole, with the nulls in it; None where there is no such
        object. Raises Changed where the name belongs to an object with another UID."""
        ...

    async def delete(
        self, resource: Resource, namespace: str, name: str, uid: str, version: str = "", *, at_once: bool = False
    ) -> bool:
        """Deletes the object if it is the one with that UID and, where one is given, that resource version. False
        where it has changed since; an object that is not there is deleted already. A Pod that a kubelet has stays until
        the kubelet has ended it, unless it is to go `at_once`."""
        ...

    async def log(self, namespace: str, pod: str, container: str) -> bytes | None:
        """What the container printed; None where there is no log to be had."""
        ...
