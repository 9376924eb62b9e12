"""A gateway is alive whatever else is away, and ready while it reaches its store."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from pilothouse.gateway import probes
from pilothouse.store.errors import StoreUnavailable, StoreUnusable
from tests.gateway.desk import Desk


async def test_it_is_ready_while_the_store_answers_although_the_api_server_is_away(desk: Desk) -> None:
    desk.kube.away = True
    for path in ("/livez", "/readyz"):
        assert (await desk.client.get(desk.url + path)).status_code == 200


async def _gone() -> UUID:
    raise StoreUnavailable("away")


async def _refuses() -> UUID:
    raise StoreUnusable("the tables are of another version")


async def _hangs() -> UUID:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("installation", [_gone, _refuses, _hangs])
async def test_it_is_alive_and_not_ready_while_the_store_does_not(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, installation: Callable[[], Awaitable[UUID]]
) -> None:
    monkeypatch.setattr(desk.store, "installation", installation)
    monkeypatch.setattr(probes, "PATIENCE", 0.01)
    assert (await desk.client.get(f"{desk.url}/readyz")).status_code == 503
    assert (await desk.client.get(f"{desk.url}/livez")).status_code == 200
