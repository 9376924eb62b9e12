"""What a Secret holds reaches the process that asks for it, and nothing else."""

import base64
import binascii
import json
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from tests.cli.command import Cli

CANARY = 'kanarie/"é\\+7f3b9'

FILE = """\
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {inline: %(base64)s}
stringData: {file: %(json)s, model: %(json)s}
---
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: worker}
spec:
  model:
    provider: OpenAI
    name: m
    baseURL: http://127.0.0.1:9/v1
    apiKeyFrom: {secretKeyRef: {name: s, key: model}}
---
apiVersion: pilothouse.dev/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  failurePolicy: FinishAll
  steps:
    - name: good
      runCommand:
        command: [sh, -c, 'test "$S" = "$(cat f.txt)" && printf %%s "$S" > FOLDER/seen']
        env: [{name: S, valueFrom: {secretKeyRef: {name: s, key: inline}}}]
        files: [{path: f.txt, valueFrom: {secretKeyRef: {name: s, key: file}}}]
    - name: bad
      runCommand:
        command: [sh, -c, 'exit 3']
        env: [{name: S, valueFrom: {secretKeyRef: {name: s, key: inline}}}]
        files: [{path: f.txt, valueFrom: {secretKeyRef: {name: s, key: file}}}]
    - name: agent
      invokeAgent: {agentRef: {name: worker}, message: Hello.}
      timeout: 3s
    - {name: pair, transform: {value: 1}}
"""


def forms(text: str) -> list[bytes]:
    """The text as it is and in every encoding that a careless writer might give it."""
    raw = text.encode()
    return [
        raw,
        base64.b64encode(raw).rstrip(b"="),
        binascii.hexlify(raw),
        quote(text, safe="").encode(),
        json.dumps(text)[1:-1].encode(),
        json.dumps(text, ensure_ascii=False)[1:-1].encode(),
    ]


async def everything(dsn: str) -> bytes:
    """All rows of all tables as text, and all bytes of all blobs."""
    found = []
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        await connection.execute("SET bytea_output = 'escape'")
        tables = await connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        for (table,) in await tables.fetchall():
            rows = await connection.execute(sql.SQL("SELECT t::text FROM {} t").format(sql.Identifier(table)))
            found += [row.encode() for (row,) in await rows.fetchall()]
        blobs = await connection.execute("SELECT data FROM blobs")
        found += [bytes(data) for (data,) in await blobs.fetchall()]
    return b"\n".join(found)


@pytest.mark.feature("B44")
async def test_a_secret_is_nowhere_but_in_the_process_that_asked_for_it(cli: Cli, database: str) -> None:
    values = {"base64": base64.b64encode(CANARY.encode()).decode(), "json": json.dumps(CANARY)}
    file = cli.file((FILE % values).replace("FOLDER", str(cli.folder)))
    shown = [await cli("run", "-f", file)]
    assert shown[0].status == 1
    assert seen(cli.folder) == CANARY
    for command in (("describe", "w"), ("logs", "w"), ("events", "w", "-o", "json"), ("get", "w", "-o", "json")):
        shown.append(await cli(*command))
    assert "bad" in shown[1].out
    told = "".join(result.out + result.err for result in shown).encode() + await everything(database)
    assert b"configMaps" in told, "the closure was searched too"
    assert [form for form in forms(CANARY) if form in told] == []
    assert files_with(cli.folder / "state", CANARY) == []


def seen(folder: Path) -> str:
    return (folder / "seen").read_text()


def files_with(folder: Path, text: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if any(form in path.read_bytes() for form in forms(text))]
