"""API writes, by who asked for them, as the API server itself counts them.

The server counts requests by FlowSchema. One that matches a service account's writes therefore makes it count just
these. It leads to where a service account's requests are led anyhow, so nothing else changes.
"""

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.cluster.api import Api
from e2e.cluster.clients import Kubectl, Manifest

LEASES = "leases"

_VERBS = ("create", "update", "patch", "delete", "deletecollection")
_KINDS: Mapping[str, Mapping[str, list[str]]] = {
    "events": {"apiGroups": ["", "events.k8s.io"], "resources": ["events"]},
    LEASES: {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]},
    "objects": {"apiGroups": ["*"], "resources": ["*"]},
}
"""Tried in this order: what is neither an event nor a lease is an object."""

_PRECEDENCE = 1000
"""After the server's own components, before its default for service accounts."""

_COUNT = re.compile(r'^apiserver_flowcontrol_dispatched_requests_total\{flow_schema="([^"]+)".*\} (\d+)$', re.MULTILINE)

Written = Mapping[tuple[str, str], int]

_CALM = 5
"""Seconds without a write that show that all has been written."""

_PATIENCE = 24


@dataclass(frozen=True)
class Writer:
    """A service account whose writes are counted, from `ensure` on."""

    name: str
    namespace: str
    account: str

    def ensure(self, kubectl: Kubectl) -> None:
        schemas = [self._schema(kind, _PRECEDENCE + at) for at, kind in enumerate(_KINDS)]
        kubectl.apply(*schemas)
        kubectl.wait("condition=Dangling=False", *(f"flowschema/{self._of(kind)}" for kind in _KINDS))

    def counted(self, metrics: str) -> Mapping[str, int]:
        """Its writes of each kind so far, in the API server's metrics."""
        found = dict(_COUNT.findall(metrics))
        return {kind: int(found.get(self._of(kind), 0)) for kind in _KINDS}

    def _of(self, kind: str) -> str:
        return f"bench-{self.name}-{kind}"

    def _schema(self, kind: str, precedence: int) -> Manifest:
        subject = {"kind": "ServiceAccount", "serviceAccount": {"namespace": self.namespace, "name": self.account}}
        what: dict[str, Any] = {"verbs": list(_VERBS), **_KINDS[kind], "clusterScope": True, "namespaces": ["*"]}
        return {
            "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
            "kind": "FlowSchema",
            "metadata": {"name": self._of(kind)},
            "spec": {
                "matchingPrecedence": precedence,
                "priorityLevelConfiguration": {"name": "workload-low"},
                "distinguisherMethod": {"type": "ByUser"},
                "rules": [{"subjects": [subject], "resourceRules": [what]}],
            },
        }


@dataclass(frozen=True)
class Ledger:
    """What several writers have written, by writer and kind."""

    api: Api
    writers: tuple[Writer, ...]

    def read(self) -> Written:
        metrics = self.api.text("/metrics")
        return {(each.name, kind): n for each in self.writers for kind, n in each.counted(metrics).items()}

    def settled(self) -> Written:
        """The same, once nothing more was written for a while; leases are renewed as long as their holder lives."""
        before = self.read()
        for _ in range(_PATIENCE):
            time.sleep(_CALM)
            now = self.read()
            if all(before[key] == n for key, n in now.items() if key[1] != LEASES):
                return now
            before = now
        raise AssertionError(f"somebody writes without end: {before}")
