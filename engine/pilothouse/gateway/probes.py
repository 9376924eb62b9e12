"""What the kubelet asks: is this process alive, and can it serve?"""

import asyncio

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pilothouse.gateway.answers import json_answer
from pilothouse.store.errors import StoreUnavailable
from pilothouse.store.ports import RunStore

PATIENCE = 3.0
"""Seconds within which the store must answer for this gateway to be ready."""


def probe_routes(store: RunStore) -> list[Route]:
    """`/livez` and `/readyz`. An outage of the store makes a gateway unready, never dead: a restart would not help."""

    async def livez(request: Request) -> Response:
        return json_answer({"status": "alive"})

    async def readyz(request: Request) -> Response:
        try:
            async with asyncio.timeout(PATIENCE):
                await store.installation()
        except TimeoutError:
            raise StoreUnavailable(f"no answer within {PATIENCE:g} s") from None
        return json_answer({"status": "ready"})

    return [Route("/livez", livez), Route("/readyz", readyz)]
