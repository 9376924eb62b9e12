"""Runs of the contenders, each in a namespace of its own, and the seconds that they take."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench.cluster.api import Api
from bench.cluster.contenders import Contender
from e2e.cluster.clients import Kubectl
from e2e.poll import until

_RESTRICTED = {"pod-security.kubernetes.io/enforce": "restricted"}


@contextmanager
def place(kubectl: Kubectl, api: Api, contender: Contender) -> Iterator["Place"]:
    """A namespace that admits restricted Pods only, for as long as the context lasts."""
    metadata = {"generateName": "bench-", "labels": _RESTRICTED}
    manifest = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    name = kubectl("create", "--filename=-", "--output=jsonpath={.metadata.name}", stdin=manifest)
    kubectl.within(name).wait("create", "serviceaccount/default")
    try:
        yield Place(api, contender, name)
    finally:
        kubectl("delete", "namespace", name, timeout=300)


@dataclass(frozen=True)
class Place:
    """Where a contender runs."""

    api: Api
    contender: Contender
    namespace: str

    def run(self, *names: str) -> float:
        """Seconds from before the first object's creation until a watcher has seen the end of all that are named."""
        left, path = set(names), self.contender.path(self.namespace)
        with self.api.watching(path) as states:
            begun = time.perf_counter()
            for name in names:
                self.api.create(path, self.contender.manifest(name))
            for state in states:
                if self.contender.ended(state):
                    left.discard(state["metadata"]["name"])
                if not left:
                    return time.perf_counter() - begun
        raise AssertionError(f"the watch ended before {', '.join(sorted(left))}")

    def clear(self) -> None:
        """Deletes what ran, and returns when it is gone, the Pods too: the next run then has the node for itself."""
        path, pods = self.contender.path(self.namespace), f"/api/v1/namespaces/{self.namespace}/pods"
        self.api.delete_all(path)
        until(lambda: not self.api.items(path) and not self.api.items(pods), f"{path} is empty", seconds=300)
