"""The Kubernetes API over HTTP. lightkube supplies the credentials and the connection; objects stay plain JSON."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from lightkube.config.client_adapter import AsyncClient, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig

from pilothouse_operator.kube.errors import AlreadyExists, ApiUnavailable, Changed, KubeError, Refused
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import Resource

TIMEOUT = 30.0
"""Seconds until an answer must have come."""

PAGE = 500
"""Objects that one answer to a list holds."""

LOG_LIMIT = 24 * 1024 * 1024
"""Bytes of a container's log that are read. The kubelet keeps less in one file."""

_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

_NO_LOG = b"unable to retrieve container logs for "
"""How a kubelet begins what it answers, with HTTP 200, in place of a log that was taken away with its container."""

_AWAY = frozenset({408, 429, 500, 502, 503, 504})

_REFUSALS = frozenset({400, 403, 404, 413, 422})
"""400 is what a webhook says that denies without a code of its own, and what comes of a body that cannot be decoded."""

_NOT_READY = "not yet ready to handle request"
"""What admission says with a 403 until it knows enough to judge, in an API server that has just begun: no refusal."""


@asynccontextmanager
async def kube_client(kubeconfig: Path | None = None) -> AsyncIterator["KubeClient"]:
    """A client with the rights of this Pod's service account, or of the kubeconfig's current context."""
    config = KubeConfig.from_file(str(kubeconfig)) if kubeconfig else KubeConfig.from_env()
    params = ConnectionParams(timeout=httpx2.Timeout(TIMEOUT))
    chosen = config.get()
    assert chosen is not None  # noqa: S101 - it raises where there is none, as no default is given
    async with AsyncClient(chosen, params) as http:
        yield KubeClient(http)


class KubeClient:
    """Implements the port `Kube`."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Object | None:
        return await self._found("GET", resource.path(namespace, name))

    async def list(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        return await self._pages(resource.path(namespace), {"labelSelector": labels} if labels else {}, {})

    async def names(self, resource: Resource, namespace: str | None = None, labels: str = "") -> Sequence[Object]:
        query = {"labelSelector": labels} if labels else {}
        return await self._pages(resource.path(namespace), query, {"Accept": _METADATA})

    async def _pages(self, path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> Sequence[Object]:
        items: list[Object] = []
        query = {"limit": str(PAGE), **query}
        while True:
            page = await self._json("GET", path, params=query, headers=headers)
            items += page["items"] or []  # null where there are none
            if not (after := page["metadata"].get("continue")):
                return items
            query = {**query, "continue": after}

    async def create(self, resource: Resource, namespace: str, body: Mapping[str, Any]) -> Object:
        return await self._json("POST", resource.path(namespace), json=body)

    async def patch(self, resource: Resource, namespace: str, name: str, patch: Mapping[str, Any]) -> Object | None:
        return await self._patch(resource.path(namespace, name), "merge-patch", patch)

    async def set_status(
        self, resource: Resource, namespace: str, name: str, uid: str, status: Mapping[str, Any]
    ) -> Object | None:
        patch = [
            {"op": "add", "path": "/metadata/uid", "value": uid},
            {"op": "add", "path": "/status", "value": status},
        ]
        return await self._patch(resource.path(namespace, name, "status"), "json-patch", patch)

    async def _patch(self, path: str, kind: str, patch: Any) -> Object | None:
        headers = {"Content-Type": f"application/{kind}+json"}
        return await self._found("PATCH", path, content=json.dumps(patch).encode(), headers=headers)

    async def delete(
        self, resource: Resource, namespace: str, name: str, uid: str, version: str = "", *, at_once: bool = False
    ) -> bool:
        conditions = {"uid": uid} | ({"resourceVersion": version} if version else {})
        options: dict[str, Any] = {"preconditions": conditions, "propagationPolicy": "Background"}
        options |= {"gracePeriodSeconds": 0} if at_once else {}
        try:
            await self._found("DELETE", resource.path(namespace, name), json=options)
        except Changed:
            return not version  # without one, another object has the name now, and ours is gone
        return True

    async def log(self, namespace: str, pod: str, container: str) -> bytes | None:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        params = {"container": container, "limitBytes": str(LOG_LIMIT)}
        response = await self._send("GET", path, params=params)
        if response.status_code in (400, 404):  # 400: the container never ran, or its log was taken away
            return None
        _check(response)
        return None if response.content.startswith(_NO_LOG) else response.content

    async def _found(self, method: str, path: str, **arguments: Any) -> Object | None:
        response = await self._send(method, path, **arguments)
        if response.status_code == 404:
            return None
        _check(response)
        found: Object = response.json()
        return found

    async def _json(self, method: str, path: str, **arguments: Any) -> Object:
        response = await self._send(method, path, **arguments)
        _check(response)
        body: Object = response.json()
        return body

    async def _send(self, method: str, path: str, **arguments: Any) -> httpx2.Response:
        try:
            return await self._http.request(method, path, **arguments)
        except (httpx2.HTTPError, OSError) as error:
            raise ApiUnavailable(f"the API server cannot be reached: {str(error) or type(error).__name__}") from None


def _check(response: httpx2.Response) -> None:
    if response.is_success:
        return
    message, reason, wrong = _said(response)
    if response.status_code in _AWAY or _NOT_READY in message:
        raise ApiUnavailable(f"the API server cannot serve now: {message}")
    if response.status_code == 409:
        raise AlreadyExists(message) if reason == "AlreadyExists" else Changed(message)
    if response.status_code == 422 and "metadata.uid" in wrong:
        raise Changed(message)  # a patch for an object that is gone, whose name another one has now
    if response.status_code == 401:
        raise ApiUnavailable(f"the API server does not accept our token: {message}")
    if response.status_code in _REFUSALS:
        raise Refused(message, forbidden=response.status_code == 403)
    raise KubeError(f"HTTP {response.status_code}: {message}")


def _said(response: httpx2.Response) -> tuple[str, str, Sequence[str]]:
    """The message and the reason of a Status object, and the fields that it is about; or what else was answered."""
    try:
        status = response.json()
        causes = (status.get("details") or {}).get("causes") or ()
        fields = [str(cause.get("field", "")) for cause in causes]
        return str(status.get("message", "")), str(status.get("reason", "")), fields
    except (ValueError, AttributeError):
        return response.text[:500], "", ()
