"""Probes and metrics over HTTP, from the process's first moment on."""

import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from pilothouse.store.memory import MemoryRunStore
from pilothouse_operator.probes import Probes
from tests.operator.clock import Clock
from tests.operator.desk import desk_on


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.fixture
async def served() -> AsyncIterator[tuple[Probes, httpx.AsyncClient]]:
    port = free_port()
    async with Probes(port) as probes, httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
        while True:
            try:
                await client.get("/livez")
            except httpx.ConnectError:
                continue
            yield probes, client
            return


async def test_a_process_that_starts_lives_and_says_what_it_waits_for(
    served: tuple[Probes, httpx.AsyncClient],
) -> None:
    probes, client = served
    assert (await client.get("/livez")).status_code == 200
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.text) == (503, "waiting: the process is starting")
    probes.wait_for("the database is empty")
    assert (await client.get("/readyz")).text == "waiting: the database is empty"
    assert (await client.get("/metrics")).text == ""
    assert (await client.get("/anything")).status_code == 404


async def test_an_operator_is_ready_whether_it_leads_or_stands_by(
    served: tuple[Probes, httpx.AsyncClient], clock: Clock
) -> None:
    probes, client = served
    async with desk_on(MemoryRunStore(), clock) as desk:
        probes.watch(desk.operator)
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.text) == (200, "ok, standing by")
        await desk.begin()
        probes.watch(desk.operator)
        assert (await client.get("/readyz")).text == "ok"
        metrics = await client.get("/metrics")
        assert metrics.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "pilothouse_leading 1.0" in metrics.text


async def test_the_port_is_free_again_when_the_process_ends() -> None:
    port = free_port()
    for _ in range(2):
        async with Probes(port), httpx.AsyncClient() as client:
            while True:
                try:
                    assert (await client.get(f"http://127.0.0.1:{port}/livez")).text == "ok"
                except httpx.ConnectError:
                    continue
                break
