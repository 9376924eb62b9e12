"""The application: every route of the gateway over one store and one judge of tokens."""

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount

from pilothouse.gateway.kubeapi import KubeApi
from pilothouse.gateway.probes import probe_routes
from pilothouse.gateway.read.rights import Lacking, lacking
from pilothouse.gateway.read.routes import read_routes
from pilothouse.gateway.read.sessions import session_routes
from pilothouse.gateway.refusals import HANDLERS
from pilothouse.gateway.room import Room
from pilothouse.gateway.store_api import store_routes
from pilothouse.gateway.traffic import Metrics, Traffic
from pilothouse.store.history import RunHistory
from pilothouse.store.ports import RunStore
from pilothouse.store.remote.wire import PATH


def build_app(
    store: RunStore, history: RunHistory, kube: KubeApi, registry: CollectorRegistry | None = None
) -> Starlette:
    """Keeps nothing of its own, so any number of these may serve one store. `registry` collects its figures."""
    metrics = Metrics(registry or CollectorRegistry())
    middleware = [Middleware(Traffic, metrics)]
    handlers = {**HANDLERS, Lacking: lacking}
    return Starlette(routes=_routes(store, history, kube), middleware=middleware, exception_handlers=handlers)


def _routes(store: RunStore, history: RunHistory, kube: KubeApi) -> list[BaseRoute]:
    """One group for each whom the gateway serves: the kubelet, Pods below /store/v1, people below /read/v1."""
    room = Room()
    return [
        *probe_routes(store),
        Mount(PATH, routes=store_routes(store, kube, room)),
        *read_routes(history, kube, room),
        *session_routes(store, history, kube, room),
    ]
