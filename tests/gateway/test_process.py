"""`python -m pilothouse.gateway` as a Deployment runs it: its environment, its ports, and how it ends."""

import asyncio
import json
import os
import signal
import ssl
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from pilothouse.gateway import tokens
from pilothouse.gateway.tokens import Bearer
from pilothouse.store.postgres import PostgresRunStore
from tests.gateway.serving import CA, CERTIFICATES, LISTEN
from tests.store.samples import BUILD, created, open_attempt

ENVIRONMENT = {"PILOTHOUSE_TLS_CERT": str(LISTEN.certificate), "PILOTHOUSE_TLS_KEY": str(LISTEN.key)}


@dataclass
class Running:
    process: Process
    port: int
    metrics_port: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def told(self, begins: str) -> dict[str, Any]:
        """The first line of its log whose message begins so."""
        for line in self.lines:
            if line["message"].startswith(begins):
                return line
        assert self.process.stderr is not None
        self.lines.append(json.loads(await self.process.stderr.readline()))
        return await self.told(begins)


def kubeconfig(folder: Path) -> Path:
    """Of an API server that is not there."""
    file = folder / "kubeconfig"
    named = {"name": "c"}
    config = {
        "current-context": "c",
        "contexts": [named | {"context": {"cluster": "c", "user": "c"}}],
        "clusters": [named | {"cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [named | {"user": {"token": "t"}}],
    }
    file.write_text(json.dumps(config))
    return file


@asynccontextmanager
async def started(tmp_path: Path, environment: Mapping[str, str], port: int = 0) -> AsyncIterator[Running]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pilothouse.gateway", "--port", str(port), "--metrics-port", "0"),
        env={**os.environ, "KUBECONFIG": str(kubeconfig(tmp_path)), **environment},
        stderr=PIPE,
    )
    try:
        yield Running(process, port)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


@asynccontextmanager
async def gateway(dsn: str, tmp_path: Path, port: int) -> AsyncIterator[Running]:
    async with started(tmp_path, ENVIRONMENT | {"PILOTHOUSE_DSN": dsn}, port) as running:
        running.metrics_port = (await running.told("serving"))["metrics_port"]
        yield running


@asynccontextmanager
async def client(running: Running) -> AsyncIterator[httpx.AsyncClient]:
    trust = ssl.create_default_context(cadata=CA)
    async with httpx.AsyncClient(base_url=running.url, verify=trust, trust_env=False) as http:
        yield http


async def test_it_serves_its_routes_in_tls_and_its_figures_without(
    database: str, tmp_path: Path, unused_tcp_port: int
) -> None:
    async with gateway(database, tmp_path, unused_tcp_port) as running, client(running) as http:
        await running.told("the store is open")
        assert (await http.get("/readyz")).status_code == 200
        answer = await http.post("/store/v1/token", headers={"Authorization": "Bearer x"})
        assert (answer.status_code, answer.json()["type"]) == (503, "KubeUnavailable")
        assert (await http.get("/read/v1/namespaces/a/runs")).status_code == 401
        figures = (await http.get(f"http://127.0.0.1:{running.metrics_port}/metrics")).text
        assert 'pilothouse_gateway_requests_total{route="/store/v1/token",status="503"} 1.0' in figures
        assert "process_resident_memory_bytes" in figures
        with pytest.raises(httpx.RemoteProtocolError):
            await http.get(f"http://127.0.0.1:{running.port}/livez")


async def test_sigterm_lets_a_request_under_way_end_and_takes_no_other(
    postgres: PostgresRunStore, database: str, tmp_path: Path, unused_tcp_port: int
) -> None:
    ref = await open_attempt(postgres, await created(postgres))
    token = tokens.issue(await postgres.token_key(), Bearer(ref, BUILD))
    half, rest = asyncio.Event(), asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"first "
        half.set()
        await rest.wait()
        yield b"second"

    async with gateway(database, tmp_path, unused_tcp_port) as running, client(running) as http:
        await running.told("the store is open")
        headers = {"Authorization": f"Bearer {token}"}
        writing = asyncio.create_task(http.post("/store/v1/put_blob", content=body(), headers=headers))
        await half.wait()
        running.process.send_signal(signal.SIGTERM)
        await running.told("ending")
        async with client(running) as other:
            await refused(other)
        rest.set()
        answer = await writing
        assert answer.status_code == 200
        assert await postgres.attempt_store(ref).get_blob(answer.json()["digest"]) == b"first second"
        assert await running.process.wait() == 0


async def refused(http: httpx.AsyncClient) -> None:
    """Returns once no new connection is taken."""
    while True:
        try:
            await http.get("/livez", headers={"Connection": "close"})
        except httpx.TransportError:
            return


async def test_it_starts_while_its_database_is_away(tmp_path: Path, unused_tcp_port: int) -> None:
    dsn = "host=127.0.0.1 port=9 dbname=none"
    async with gateway(dsn, tmp_path, unused_tcp_port) as running, client(running) as http:
        await running.told("the store cannot be opened, trying again: PostgreSQL cannot be reached")
        assert (await http.get("/livez")).status_code == 200
        assert (await http.get("/readyz")).status_code == 503
        answer = await http.post("/store/v1/put_blob", headers={"Authorization": "Bearer x"})
        assert (answer.status_code, answer.json()["type"]) == (503, "StoreUnavailable")
        running.process.send_signal(signal.SIGTERM)
        assert await running.process.wait() == 0


WRONG: dict[str, tuple[int, str, dict[str, str]]] = {
    "nothing": (2, "PILOTHOUSE_DSN and PILOTHOUSE_TLS_CERT and PILOTHOUSE_TLS_KEY", {}),
    "no DSN": (2, "needs PILOTHOUSE_DSN in its environment", ENVIRONMENT),
    "no certificate there": (
        1,
        "cannot be started",
        ENVIRONMENT | {"PILOTHOUSE_DSN": "port=9", "PILOTHOUSE_TLS_CERT": "/nothing"},
    ),
    "a certificate without its key": (
        1,
        "cannot be started",
        ENVIRONMENT | {"PILOTHOUSE_DSN": "port=9", "PILOTHOUSE_TLS_CERT": str(CERTIFICATES / "other-ca.pem")},
    ),
    "a DSN that is none": (1, "the DSN cannot be read", ENVIRONMENT | {"PILOTHOUSE_DSN": "postgresql"}),
    "no API server to ask": (
        1,
        "no way to an API server",
        ENVIRONMENT | {"PILOTHOUSE_DSN": "port=9", "KUBECONFIG": "/nothing"},
    ),
}


@pytest.mark.parametrize(("status", "says", "environment"), WRONG.values(), ids=WRONG.keys())
async def test_what_is_wrong_with_its_environment_is_said(
    tmp_path: Path, status: int, says: str, environment: dict[str, str]
) -> None:
    async with started(tmp_path, environment) as running:
        assert running.process.stderr is not None
        told = [json.loads(line) async for line in running.process.stderr]
        assert await running.process.wait() == status
    assert [line["level"] for line in told if says in line["message"]] == ["error"]
