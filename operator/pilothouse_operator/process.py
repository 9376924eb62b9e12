"""The parts of the operator's process, opened in order; and what must hold before it works."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from pilothouse.store.errors import StoreError
from pilothouse.store.postgres import open_store
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse_operator.installation import Installation, StoreMismatch
from pilothouse_operator.kube.client import kube_client
from pilothouse_operator.kube.errors import ApiUnavailable, Refused
from pilothouse_operator.kube.port import Kube
from pilothouse_operator.kube.resources import OURS
from pilothouse_operator.operator import Operator
from pilothouse_operator.probes import Probes
from pilothouse_operator.settings import Settings

PAUSE = 2.0
"""Seconds between two tries while something is not there yet."""

log = logging.getLogger("pilothouse.operator")


class Unfit(Exception):  # noqa: N818 - a verdict
    """The cluster lacks what the operator needs."""


@asynccontextmanager
async def operator(settings: Settings, probes: Probes) -> AsyncIterator[Operator]:
    """The operator, once the database is the right one. Raises Unfit."""
    logging.getLogger("psycopg.pool").setLevel(logging.CRITICAL)
    async with kube_client() as kube, Evaluator() as evaluator:
        await _kinds_served(kube, settings)
        installation = await _right_store(settings, kube, probes)
        async with open_store(settings.dsn) as store:
            subject = Operator(kube, store, evaluator, settings, installation)
            probes.watch(subject)
            yield subject


async def _kinds_served(kube: Kube, settings: Settings) -> None:
    for resource in OURS:
        while True:
            try:
                await kube.names(resource, settings.namespaces[0] if settings.namespaces else None)
                break
            except ApiUnavailable as error:
                log.warning("%s", error)
                await asyncio.sleep(PAUSE)
            except Refused as error:
                raise Unfit(f"kind {resource.kind} cannot be listed: {error}; install the chart's CRDs") from None


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
        except (StoreError, StoreMismatch, ApiUnavailable) as error:
            reason = str(error)
        probes.wait_for(reason)
        log.warning("waiting: %s", reason)
        await asyncio.sleep(PAUSE)
