"""`python -I -m pilothouse.gateway`: the gateway of an installation, until SIGTERM.

PILOTHOUSE_DSN          the database
PILOTHOUSE_TLS_CERT     the file of the certificate that it shows, PEM
PILOTHOUSE_TLS_KEY      the file of its key
"""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, start_http_server

from pilothouse.gateway.app import build_app
from pilothouse.gateway.kubeapi import open_kube_api
from pilothouse.gateway.late import late_store
from pilothouse.gateway.logs import log_to_stderr
from pilothouse.gateway.server import Listen, serving
from pilothouse.store.errors import StoreUnusable
from pilothouse.store.postgres import open_store
from pilothouse.store.postgres.history import open_history

_log = logging.getLogger("pilothouse.gateway")


def main() -> int:
    options = _options()
    log_to_stderr()
    missing = [
        name for name in ("PILOTHOUSE_DSN", "PILOTHOUSE_TLS_CERT", "PILOTHOUSE_TLS_KEY") if not os.environ.get(name)
    ]
    if missing:
        _log.error("the gateway needs %s in its environment", " and ".join(missing))
        return 2
    try:
        asyncio.run(_serve(os.environ, options))
    except (OSError, RuntimeError, StoreUnusable) as error:
        _log.error("the gateway cannot be started: %s", error)
        return 1
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pilothouse.gateway")
    parser.add_argument("--port", type=int, default=8443, help="HTTPS: the store API and the read API")
    parser.add_argument("--metrics-port", type=int, default=8080, help="plain HTTP: metrics alone")
    return parser.parse_args()


async def _serve(environment: Mapping[str, str], options: argparse.Namespace) -> None:
    stop = _asked_to_stop()
    registry = _registry()
    certificate, key = Path(environment["PILOTHOUSE_TLS_CERT"]), Path(environment["PILOTHOUSE_TLS_KEY"])
    listen = Listen(options.port, certificate, key)
    dsn = environment["PILOTHOUSE_DSN"]
    async with (
        open_kube_api() as kube,
        late_store(lambda: open_store(dsn)) as store,
        open_history(dsn) as history,
    ):
        metrics, thread = start_http_server(options.metrics_port, registry=registry)
        async with serving(build_app(store, history, kube, registry), listen) as port:
            _log.info("serving", extra={"fields": {"port": port, "metrics_port": metrics.server_port}})
            await stop.wait()
            _log.info("ending")
        metrics.shutdown()
        thread.join()


def _asked_to_stop() -> asyncio.Event:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


def _registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=registry)
    return registry


if __name__ == "__main__":
    sys.exit(main())
