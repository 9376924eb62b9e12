"""The parts of the operator's process, opened in order; and what must hold before it works."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import UUID

from pilothouse.store.errors import StoreError
from pilothouse.store.postgres import open_store
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse_operator.installation import Installation, StoreMismatch
from pilothouse_operator.kube.client import kube_client
from pilothouse_operator.kube.errors import ApiUnavailable, KubeError, Refused
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import OURS
from pilothouse_operator.operator import Operator
from pilothouse_operator.probes import Probes
from pilothouse_operator.settings import Settings

PAUSE = 2.0
"""Seconds between two tries while something is not there yet."""

RETURN_PAUSE = 30.0
"""Seconds between two looks whether a namespace may be read that could not be."""

log = logging.getLogger("pilothouse.operator")


class Unfit(Exception):  # noqa: N818 - a verdict
    """The cluster lacks what the operator needs."""


@asynccontextmanager
async def operator(settings: Settings, probes: Probes) -> AsyncIterator[Operator]:
    """The operator, once the database is the right one, with those namespaces that it may read. Raises Unfit."""
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    async with kube_client() as kube, Evaluator() as evaluator:
        settings = await _readable(kube, settings)
        installation = await _right_store(settings, kube, probes)
        async with open_store(settings.dsn) as store:
            subject = Operator(kube, store, evaluator, settings, installation)
            probes.watch(subject)
            yield subject


async def _readable(kube: Kube, settings: Settings) -> Settings:
    """The settings with those namespaces alone that may be read: where a watch may not, kopf ends, and with it the
    service of all others. Raises Unfit where nothing may be read."""
    if not settings.namespaces:
        await _list_kinds(kube, None)
        return settings
    readable = [namespace for namespace in settings.namespaces if await _may_read(kube, namespace)]
    if refused := [namespace for namespace in settings.namespaces if namespace not in readable]:
        log.error("not served until they may be read; give the rights of the chart: namespaces %s", ", ".join(refused))
    if not readable:
        raise Unfit("no namespace may be read")
    return replace(settings, namespaces=tuple(readable))


async def until_readable(kube: Kube, namespaces: Iterable[str]) -> None:
    """Returns once one of them may be read, so that the process can begin anew and serve it."""
    waiting = list(namespaces)
    while True:
        await asyncio.sleep(RETURN_PAUSE)
        for namespace in waiting:
            if await _may_read(kube, namespace):
                log.info("namespace %s may be read by now: the operator begins anew", namespace)
                return


async def _may_read(kube: Kube, namespace: str) -> bool:
    try:
        await _list_kinds(kube, namespace)
    except Refused:
        return False
    return True


async def _list_kinds(kube: Kube, namespace: str | None) -> None:
    """Waits for the API server. Raises Unfit where a kind is not served, Refused where a namespace may not be read."""
    for resource in OURS:
        while True:
            try:
                await kube.names(resource, namespace)
                break
            except ApiUnavailable as error:
                log.warning("%s", error)
                await asyncio.sleep(PAUSE)
            except Refused as error:
                if error.forbidden and namespace is not None:
                    raise
                remedy = "give the rights of the chart" if error.forbidden else "install the chart's CRDs"
                raise Unfit(f"kind {resource.kind} cannot be listed: {error}; {remedy}") from None


async def _right_store(settings: Settings, kube: Kube, probes: Probes) -> UUID:
    """Waits until the store can be opened, is migrated, and is the one that the release knows; its installation."""
    release = Installation(kube, settings.namespace, settings.installation_config_map)
    while True:
        try:
            async with open_store(settings.dsn) as store:
                recorded, found = await release.recorded(), await store.installation()
            if recorded is not None:
                release.check(recorded, found)
                return found
            reason = "the migrate Job has not recorded the installation yet"
        except (StoreError, StoreMismatch, KubeError) as error:
            reason = str(error)
        probes.wait_for(reason)
        log.warning("waiting: %s", reason)
        await asyncio.sleep(PAUSE)
