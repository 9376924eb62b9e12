"""The application: every route of the gateway over one store and one judge of tokens."""

from starlette.applications import Starlette
from starlette.routing import BaseRoute

from pilothouse.gateway.kubeapi import KubeApi
from pilothouse.gateway.probes import probe_routes
from pilothouse.gateway.refusals import HANDLERS
from pilothouse.store.ports import RunStore


def build_app(store: RunStore, kube: KubeApi) -> Starlette:
    """Keeps nothing of its own, so any number of these may serve one store."""
    return Starlette(routes=_routes(store, kube), exception_handlers=HANDLERS)


def _routes(store: RunStore, kube: KubeApi) -> list[BaseRoute]:
    """One group for each whom the gateway serves: the kubelet, Pods below /store/v1, people below /read/v1."""
    return [*probe_routes(store)]
