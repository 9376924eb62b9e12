"""The migrate Job: brings the right database to this version's schema, and ties the release to it.

python -m pilothouse_operator.migrate
"""

import asyncio
import logging
import signal
import sys
from uuid import UUID

from pilothouse.store.errors import StoreUnavailable, StoreUnusable
from pilothouse.store.postgres import installation_of, migrate
from pilothouse_operator.installation import Installation, StoreMismatch
from pilothouse_operator.kube.client import kube_client
from pilothouse_operator.kube.errors import ApiUnavailable
from pilothouse_operator.settings import SettingsError, read_setting

PAUSE = 2.0
PATIENCE = 300.0
"""Seconds that the database and the API server may take to be there."""

log = logging.getLogger("pilothouse.migrate")


async def run() -> None:
    """Migrates, or raises StoreMismatch before anything is touched."""
    dsn = read_setting("DSN")
    async with kube_client() as kube:
        release = Installation(kube, read_setting("NAMESPACE"), read_setting("INSTALLATION_CONFIGMAP"))
        recorded, found = await release.recorded(), await installation_of(dsn)
        release.check(recorded, found)
        for name in await migrate(dsn):
            log.info("applied %s", name)
        id_ = await installation_of(dsn)
        assert id_ is not None  # noqa: S101 - the first migration makes it
        if recorded is None:
            await _tie(release, id_)


async def _tie(release: Installation, id_: UUID) -> None:
    await release.record(id_)
    log.info("this is installation %s", id_)


async def patiently() -> None:
    """Waits while the database or the API server is away."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return await run()
            except (StoreUnavailable, ApiUnavailable) as error:
                log.warning("waiting: %s", error)
                await asyncio.sleep(PAUSE)


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # a container's first process has none
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        asyncio.run(patiently())
    except (SettingsError, StoreMismatch, StoreUnusable) as error:
        sys.exit(f"pilothouse migrate: {error}")
    except TimeoutError:
        sys.exit(f"pilothouse migrate: the database was not there within {PATIENCE:g} seconds")


if __name__ == "__main__":
    main()
