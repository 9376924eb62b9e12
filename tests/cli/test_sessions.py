"""`session` and the commands that speak to an agent: the same on this machine and on a cluster."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import yaml

from pilothouse.agents.messages import from_wire
from pilothouse.records.queues import QueueName
from pilothouse.records.sessions import NewEntry, named_session
from pilothouse.records.states import AttemptState
from pilothouse.store.ports import AttemptStore
from pilothouse.store.postgres import PostgresRunStore
from tests.cli.apiserver import TELL
from tests.cli.cluster import Cluster, cluster_on
from tests.cli.command import Cli, Result
from tests.gateway.doubles import BOB
from tests.store.fixtures import database, postgres, server_dsn
from tests.store.samples import attempt_of

__all__ = ["database", "postgres", "server_dsn"]

SAYING = {"steer": "steer", "follow-up": "followUp", "next": "nextTurn"}


@pytest.fixture
async def cluster(database: str, postgres: PostgresRunStore, tmp_path: Path) -> AsyncIterator[Cluster]:
    async with cluster_on(database, postgres, tmp_path, certificates=False) as cluster:
        yield cluster


@pytest.fixture(params=["here", "on a cluster"])
def cli(request: pytest.FixtureRequest, cluster: Cluster) -> Cli:
    return cluster.here if request.param == "here" else cluster.cli


def entry(kind: str, **body: Any) -> NewEntry:
    return NewEntry(uuid4(), kind, body)


def said(role: str, *blocks: Mapping[str, Any] | str, **more: Any) -> NewEntry:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return entry("message", message={"role": role, "content": content, "timestamp": 1, **more})


def answer(*blocks: Mapping[str, Any] | str) -> NewEntry:
    usage = {"input": 1, "output": 1, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 2}
    cost = dict.fromkeys(("input", "output", "cacheRead", "cacheWrite", "total"), 0)
    more = {"api": "a", "provider": "p", "model": "m", "usage": {**usage, "cost": cost}, "stopReason": "stop"}
    return said("assistant", *blocks, **more)


def moved(target: NewEntry) -> NewEntry:
    return entry("leaf", targetId=str(target.id))


CALL = {"type": "toolCall", "id": "c", "name": "shell", "arguments": {"command": "ls"}}
LISTED = "\n".join(f"file{number}" for number in range(8))


async def conversation(store: PostgresRunStore, tenant: UUID) -> AttemptStore:
    """The session `notes`, at which an attempt of nightly/1 is at work, with a branch that was left."""
    attempt = await attempt_of(store, tenant)
    session = named_session(tenant, "notes")
    await attempt.open_session(session, "notes")
    ask, first, other = said("user", "Count the files."), answer("There are 7."), said("user", "Sure\x1b[2J?")
    result = said("toolResult", LISTED, toolCallId="c", toolName="shell", isError=False)
    entries = [
        *(entry("model_change", provider="openai", modelId="gpt"), ask, first, other, moved(ask)),
        *(answer("I look.", CALL), result, entry("compaction", summary="Counted\nfiles.", tokensBefore=900)),
        *(answer("There are 8."), entry("label", targetId=str(ask.id), label="question")),
    ]
    await attempt.append(session, None, entries)
    return attempt


SHOWN = """\
-- model: openai/gpt
user: Count the files.  [question]
+ another branch
| assistant: There are 7.
| user: Sure\\x1b[2J?
assistant: I look.
assistant: shell({"command": "ls"})
shell: file0
  file1
  file2
  file3
  file4
  ... 3 more lines
-- compacted 900 tokens: Counted files.
assistant: There are 8.
<- the next one goes here
"""


async def test_sessions_are_listed_with_what_waits(cli: Cli, cluster: Cluster) -> None:
    assert (await cli("session", "list")).out == "no sessions in namespace team-a\n"
    attempt = await conversation(cluster.store, cluster.tenant)
    outside = cluster.store.session_store()
    own = uuid4()
    await attempt.open_session(own)
    for queue in (QueueName.NEXT_TURN, QueueName.STEER, QueueName.NEXT_TURN):
        await outside.enqueue(cluster.tenant, named_session(cluster.tenant, "notes"), queue, {})
    listed = await cli("session", "list")
    cells = [re.split(" {3,}", re.sub(r"\d+(ms|s)\b", "now", line)) for line in listed.out.splitlines()]
    assert cells[0] == ["SESSION", "RUN", "ENTRIES", "CHANGED", "AT WORK", "WAITING"]
    assert ["notes", "nightly/1", "10", "now", "yes", "1 steer, 2 nextTurn"] in [[*filter(None, row)] for row in cells]
    assert [str(own), "nightly/1", "0", "now", "yes"] in [[*filter(None, row)] for row in cells]
    names = {head["name"]: head for head in (await cli("session", "list", "-o", "json")).data}
    assert names["notes"]["waiting"] == {"steer": 1, "nextTurn": 2}
    assert (names[None]["id"], names[None]["run"]["number"]) == (str(own), 1)


async def test_a_session_is_shown_as_a_tree(cli: Cli, cluster: Cluster) -> None:
    await conversation(cluster.store, cluster.tenant)
    session = named_session(cluster.tenant, "notes")
    shown = await cli("session", "show", "notes")
    assert shown.out.partition("\n\n")[2] == SHOWN
    assert "Run:      nightly/1, at work\nEntries:  10\n" in shown.out
    assert (await cli("session", "show", str(session))).out == shown.out
    await cli("next", "notes", "And now?\nTell.")
    waiting = (await cli("session", "show", "notes")).out.partition("\n\nWaiting:\n")[2].split()
    assert (waiting[0], waiting[2:]) == ("nextTurn", ["user:", "And", "now?"])


async def test_a_session_is_data(cli: Cli, cluster: Cluster) -> None:
    await conversation(cluster.store, cluster.tenant)
    await cli("next", "notes", "And now?")
    data = (await cli("session", "show", "notes", "-o", "json")).data
    assert yaml.safe_load((await cli("session", "show", "notes", "-o", "yaml")).out) == data
    assert [line["type"] for line in data["tree"]][:2] == ["model_change", "message"]
    assert data["leaf"] == data["tree"][-1]["id"]
    assert data["queued"][0]["message"]["content"] == [{"type": "text", "text": "And now?"}]
    assert (data["name"], data["entries"], data["atWork"]) == ("notes", 10, True)


async def test_a_file_of_a_session_makes_the_same_session(cli: Cli, cluster: Cluster, tmp_path: Path) -> None:
    await conversation(cluster.store, cluster.tenant)
    assert (await cli("session", "export", "notes", "-o", str(tmp_path / "notes.jsonl"))).out == ""
    text = (tmp_path / "notes.jsonl").read_text()
    header, *lines = map(json.loads, text.splitlines())
    assert (header["version"], len(lines)) == (3, 10)
    assert (await cli("session", "export", "notes")).out == text
    imported = await cli("session", "import", str(tmp_path / "notes.jsonl"), "--name", "copy")
    copy = named_session(cluster.tenant, "copy")
    assert (imported.out, imported.err) == (f"imported as copy: 10 entries, id {copy}\n", "")
    assert (await cli("session", "export", "copy")).out.splitlines()[1:] == text.splitlines()[1:]
    assert (await cli("session", "show", "copy")).out.partition("\n\n")[2] == SHOWN
    piped = await cli("session", "import", "-", "--name", "third", stdin=text)
    assert piped.out.startswith("imported as third: 10 entries")


async def test_what_an_import_changes_is_told(cli: Cli, cluster: Cluster) -> None:
    lines = [
        {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/"},
        {"type": "message", "id": "a", "parentId": None, "timestamp": "2026-01-02T03:04:05Z", **answer(CALL).body},
    ]
    file = cli.file("".join(json.dumps(line) + "\n" for line in lines) + '{"type": "mess', "s.jsonl")
    imported = await cli("session", "import", file, "--name", "notes")
    assert imported.err.splitlines() == [
        "pilothouse: line 3 is cut off and was left out: 14 bytes without a line end",
        "pilothouse: 1 entries had ids that are no UUIDs, and have new ones",
        "pilothouse: 1 calls had no result, and have one that says so",
    ]
    assert imported.out.startswith("imported as notes: 2 entries")


HEADER = '{"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-02T03:04:05Z", "cwd": "/"}\n'
BAD = [
    ("", "line 1 is no header of a session"),
    (HEADER.replace("3", "2", 1), "line 1 is no header of a session: version"),
    (HEADER + '{"type": "message"}\n', "line 2: id: must be a text that is not empty"),
    (HEADER + "nonsense\n", "line 2: it is not JSON"),
]


@pytest.mark.parametrize(("text", "says"), BAD)
async def test_a_file_that_is_no_session_is_refused_with_its_line(cluster: Cluster, text: str, says: str) -> None:
    file = cluster.here.file(text, "bad.jsonl")
    told = refusal(await cluster.here("session", "import", file, "--name", "notes"))
    assert told.startswith(f"{file}: {says}")
    assert told.endswith("; nothing was imported")
    assert (await cluster.here("session", "list")).out == "no sessions in namespace team-a\n"


def refusal(result: Result) -> str:
    """What a command says that cannot be carried out: one line, and nothing else."""
    assert (result.status, result.out) == (2, "")
    assert result.err.count("\n") == 1, result.err
    return result.err.removeprefix("pilothouse: ").rstrip()


async def test_an_import_needs_a_name_that_is_free_and_a_file_that_is_there(cli: Cli) -> None:
    file = cli.file(HEADER, "empty.jsonl")
    assert (await cli("session", "import", file, "--name", "notes")).status == 0
    told = refusal(await cli("session", "import", file, "--name", "notes"))
    assert told == "there is a session 'notes' already; import under another name; nothing was imported"
    told = refusal(await cli("session", "import", file, "--name", str(uuid4())))
    assert told.endswith("looks like an id, and would be taken for one; give another name")
    assert "1 to 253" in refusal(await cli("session", "import", file, "--name", "x" * 254))
    told = refusal(await cli("session", "import", "nowhere", "--name", "other"))
    assert told == "nowhere cannot be used: No such file or directory"


@pytest.mark.feature("A69")
@pytest.mark.parametrize("command", SAYING)
async def test_what_is_said_waits_in_the_queue_of_the_agent_at_work(cli: Cli, cluster: Cluster, command: str) -> None:
    attempt = await conversation(cluster.store, cluster.tenant)
    session = named_session(cluster.tenant, "notes")
    results = [await cli(command, name, "Look again: \u00e9\u2026") for name in ("notes", str(session))]
    items = await attempt.queued(session)
    assert [result.out for result in results] == [f"accepted in {SAYING[command]}: {item.id}\n" for item in items]
    assert [item.queue for item in items] == [SAYING[command]] * 2
    message = from_wire(items[0].message)
    assert (message.role, items[0].message["content"]) == (
        "user",
        [{"type": "text", "text": "Look again: \u00e9\u2026"}],
    )


async def test_where_no_agent_is_at_work_only_a_message_for_later_is_accepted(cli: Cli, cluster: Cluster) -> None:
    attempt = await conversation(cluster.store, cluster.tenant)
    await attempt.finish(AttemptState.SUCCEEDED)
    for command in ("steer", "follow-up"):
        assert refusal(await cli(command, "notes", "Stop.")) == (
            "no agent is at work on session `notes`, so nobody would read this; "
            "`pilothouse next` leaves it there for the next prompt"
        )
    assert (await cli("next", "notes", "Later.")).status == 0
    assert refusal(await cli("next", "notes", " ")) == "TEXT is empty; an agent needs something to hear"


@pytest.mark.parametrize("command", ["session show S", "session export S", "steer S hi", "follow-up S hi", "next S hi"])
async def test_a_session_that_is_not_there_is_said_to_be_missing(cli: Cli, command: str) -> None:
    for name in ("notes", str(uuid4())):
        words = [name if word == "S" else word for word in command.split()]
        says = f"there is no session `{name}` in namespace team-a; see `pilothouse session list`"
        assert refusal(await cli(*words)) == says


async def test_a_message_whose_acceptance_was_not_heard_of_is_accepted_once(cluster: Cluster) -> None:
    """The gateway takes each, and the first answers are lost on the way."""
    attempt = await conversation(cluster.store, cluster.tenant)
    cluster.server.losing = 2
    told = await cluster.cli("steer", "notes", "Stop.")
    [item] = await attempt.queued(named_session(cluster.tenant, "notes"))
    assert told.out == f"accepted in steer: {item.id}\n"
    assert cluster.server.losing == 0
    cluster.server.losing = 100
    said = refusal(await cluster.cli("steer", "notes", "Again."))
    assert said.startswith("whether the message was accepted is not known: ")
    assert said.endswith("`pilothouse session show` of `notes` lists what waits")


async def test_rights_that_are_missing_are_named(cluster: Cluster) -> None:
    await conversation(cluster.store, cluster.tenant)
    session = named_session(cluster.tenant, "notes")
    cluster.server.rights |= {f"bob {right}" for right in ("get services/proxy", TELL)}
    bob = cluster.command("--kubeconfig", cluster.kubeconfig(user={"token": BOB}))
    assert "bob may not list workflows.pilothouse.dev" in refusal(await bob("session", "list"))
    cluster.kube.grant("bob", "team-a", "list workflows")
    assert "bob may not get pods/log" in refusal(await bob("session", "show", "notes"))
    said = refusal(await bob("next", "notes", "hi"))
    assert f"bob may not create sessions.pilothouse.dev/{session}/messages in namespace team-a" in said
    file = cluster.here.file(HEADER, "empty.jsonl")
    assert "bob may not create sessions.pilothouse.dev in" in refusal(
        await bob("session", "import", file, "--name", "other")
    )
    cluster.kube.grants = {f"bob create sessions/messages team-a {session}"}
    assert (await bob("next", str(session), "hi")).status == 0
    cluster.server.rights.remove(f"bob {TELL}")
    said = refusal(await bob("next", str(session), "hi"))
    assert 'User "bob" cannot create resource "services/proxy"' in said
    assert "auth can-i create services/https:pilothouse-gateway:https --subresource=proxy" in said
