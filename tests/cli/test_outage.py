"""A run through an outage of its database: it pauses, nothing fails, nothing is done twice, and it goes on."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pilothouse.store.embedded.cluster import Cluster
from pilothouse.store.embedded.owner import Owner
from pilothouse.store.postgres import migrate
from tests.cli.command import Cli

AGENT = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: worker}
spec:
  model:
    provider: Scripted
    script:
      - toolCalls: [{name: shell, arguments: {command: %s}}]
      - text: all done
  tools: [{builtin: shell}]
---
apiVersion: pilothouse.dev/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  steps: [{name: work, invokeAgent: {agentRef: {name: worker}, message: Go.}}]
  outputs: [{name: said, value: "${{ steps.work.outputs.text }}"}]
"""


@pytest.fixture
async def server() -> AsyncIterator[Cluster]:
    """A server of the test's own, which it may stop."""
    with tempfile.TemporaryDirectory(prefix="ph-") as folder:
        cluster = Cluster.at(Path(folder) / "server", await Owner.find())
        await cluster.start()
        await migrate(cluster.dsn)
        yield cluster
        await cluster.stop()


async def test_an_agents_call_that_ends_in_an_outage_keeps_its_result(server: Cluster, tmp_path: Path) -> None:
    effects, go = tmp_path / "effects", tmp_path / "go"
    cli = Cli(tmp_path, ("--state", str(tmp_path / "state"), "--dsn", server.dsn))
    command = f"echo begun >> {effects}; until test -e {go}; do sleep 0.05; done; echo ended >> {effects}"
    async with cli.begun("run", "-f", cli.file(AGENT % command), "-o", "json") as run:
        while not effects.exists():  # noqa: ASYNC110 - a file tells nobody that it is there
            await asyncio.sleep(0.02)
        await server.stop()
        go.touch()
        await run.until("the store is away, agents wait: PostgreSQL cannot be reached now")
        await server.start()
        await run.until("the store is back, agents go on")
        result = await run.end()
    assert result.status == 0, result.err
    assert result.data["outputs"] == [{"name": "said", "value": "all done"}]
    assert result.data["steps"][0]["attempts"] == 1
    assert effects.read_text().split() == ["begun", "ended"]
