"""The API server as the benchmarks use it. A request costs all sides the same: no program is started for any."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
from lightkube.config.client_adapter import Client, ConnectionParams
from lightkube.config.kubeconfig import KubeConfig

Object = Mapping[str, Any]

_QUIET = 300
"""Seconds of a watch without any event after which nothing is expected any more."""


@contextmanager
def connected(kubeconfig: Path) -> Iterator["Api"]:
    """The API server of the kubeconfig's current context."""
    chosen = KubeConfig.from_file(str(kubeconfig)).get()
    assert chosen is not None
    with Client(chosen, ConnectionParams(timeout=httpx2.Timeout(30, read=_QUIET))) as http:
        yield Api(http)


class Api:
    """Creates, lists, watches and deletes below paths such as `/api/v1/namespaces/x/pods`."""

    def __init__(self, http: httpx2.Client) -> None:
        self._http = http

    def create(self, path: str, manifest: Object) -> None:
        _checked(self._http.post(path, json=manifest))

    def items(self, path: str) -> list[Object]:
        items: list[Object] = _checked(self._http.get(path)).json()["items"]
        return items

    def text(self, path: str) -> str:
        return _checked(self._http.get(path)).text

    def delete_all(self, path: str) -> None:
        """Asks for the end of all objects there; those that own others go when these have gone."""
        _checked(self._http.request("DELETE", path, json={"propagationPolicy": "Foreground"}))

    @contextmanager
    def watching(self, path: str) -> Iterator[Iterator[Object]]:
        """Every state from now on of the objects there. The server watches already when this is entered."""
        listed = _checked(self._http.get(path, params={"limit": 1})).json()
        query = {"watch": "true", "resourceVersion": listed["metadata"]["resourceVersion"]}
        with self._http.stream("GET", path, params=query) as response:
            response.raise_for_status()
            yield states(response.iter_lines())


def states(lines: Iterable[str]) -> Iterator[Object]:
    """The objects in a watch's events; raises RuntimeError for an event that ends the watch."""
    for line in lines:
        event = json.loads(line)
        if event["type"] == "ERROR":
            raise RuntimeError(f"the watch ended: {event['object'].get('message')}")
        if event["type"] in ("ADDED", "MODIFIED"):
            yield event["object"]


def _checked(response: httpx2.Response) -> httpx2.Response:
    assert response.is_success, f"{response.request.method} {response.url}: {response.status_code} {response.text}"
    return response
