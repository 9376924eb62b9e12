"""The operator's process: kopf watches, the operator works. kopf persists nothing, and nothing is decided here.

python -m pilothouse_operator.main
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Mapping
from typing import Any

import kopf

from pilothouse.api.base import GROUP
from pilothouse_operator.installation import StoreMismatch
from pilothouse_operator.kube.resources import OURS, PODS, Resource
from pilothouse_operator.names import SELECTOR
from pilothouse_operator.operator import Operator
from pilothouse_operator.probes import Probes
from pilothouse_operator.process import Unfit, operator, until_readable
from pilothouse_operator.settings import Settings, SettingsError

WATCH_TIMEOUT = 300
"""Seconds after which the API server ends a watch, and it is begun anew."""

SILENCE = 70
"""Seconds without as much as a bookmark after which a watch is taken for dead."""


class Nothing(kopf.DiffBaseStorage):
    """No handler asks kopf what has changed, so it need not copy each object to find out."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence({})

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


def registry_of(subject: Operator) -> kopf.OperatorRegistry:
    """What kopf is to watch, and how."""
    registry = kopf.OperatorRegistry()
    for resource in OURS:
        kopf.on.event(GROUP, resource.version, resource.plural, registry=registry)(_handler(subject, resource))
    kopf.on.event("v1", "pods", registry=registry, labels={"app.kubernetes.io/managed-by": "pilothouse"})(
        _handler(subject, PODS)
    )
    kopf.on.startup(registry=registry)(_configure)
    kopf.on.login(registry=registry, errors=kopf.ErrorsMode.PERMANENT)(_login)
    return registry


def _handler(subject: Operator, resource: Resource) -> Any:
    async def handle(type: str | None, body: Mapping[str, Any], **_: Any) -> None:
        subject.see(resource, type, body)

    return handle


async def _login(**given: Any) -> kopf.ConnectionInfo | None:
    """This Pod's service account; outside of a cluster, the kubeconfig's current context."""
    return kopf.login_with_service_account(**given) or kopf.login_with_kubeconfig(**given)


async def _configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.peering.standalone = True
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.networking.request_timeout = 30
    settings.networking.connect_timeout = 5
    settings.watching.server_timeout = WATCH_TIMEOUT
    settings.watching.inactivity_timeout = SILENCE
    settings.watching.chunk_size = 500
    settings.watching.label_selectors["v1", "pods"] = SELECTOR
    settings.queueing.worker_limit = 64
    settings.persistence.diffbase_storage = Nothing()
    settings.persistence.finalizer = f"{GROUP}/never"


async def _watch(subject: Operator) -> None:
    namespaces = subject.settings.namespaces
    where: dict[str, Any] = {"namespaces": namespaces} if namespaces else {"clusterwide": True}
    await kopf.operator(registry=registry_of(subject), standalone=True, **where)


async def run() -> None:
    """Until a signal ends it, or a part of it fails."""
    settings = Settings.of()
    async with Probes() as probes, operator(settings, probes) as subject:
        refused = set(settings.namespaces) - set(subject.settings.namespaces)
        watching = asyncio.create_task(_watch(subject))
        leading = asyncio.create_task(subject.lead())
        returning = asyncio.create_task(until_readable(subject.kube, refused))
        done, _ = await asyncio.wait({watching, leading, returning}, return_when=asyncio.FIRST_COMPLETED)
        for task in (leading, returning):
            task.cancel()
        await asyncio.gather(leading, returning, return_exceptions=True)
        for task in done:
            task.result()


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # the first process of a container has no handler of its own
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    for chatty in ("httpx2", "kopf.objects", "uvicorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    try:
        asyncio.run(run())
    except (SettingsError, StoreMismatch, Unfit) as error:
        sys.exit(f"pilothouse operator: {error}")


if __name__ == "__main__":
    main()
