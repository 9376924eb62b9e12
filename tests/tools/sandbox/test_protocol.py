"""Neither side trusts the other's bytes: a broken or hostile peer gets a typed error, and fills no memory."""

import asyncio
import contextlib
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.tools.sandbox import client, connection
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.door import admit
from pilothouse.tools.sandbox.errors import ArchiveRefused, ProtocolError, SandboxLost
from pilothouse.tools.sandbox.protocol import Frame, encode, read_frame

pytestmark = pytest.mark.feature("B35")

HELLO = Frame(0, "hello", {"protocol": 1, "sealed": True, "reason": ""})


class Peer:
    """The other end of a connection, played by a test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def say(self, *frames: Frame | bytes) -> None:
        for frame in frames:
            self._writer.write(frame if isinstance(frame, bytes) else encode(frame))
        await self._writer.drain()

    async def hear(self) -> Frame:
        frame = await read_frame(self._reader)
        assert frame is not None, "the connection was closed"
        return frame

    async def close(self) -> None:
        self._writer.close()
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)


@pytest.fixture
async def hostile() -> AsyncIterator[tuple[Sandbox, Peer]]:
    """A sandbox that has said a good `hello`, and does from then on what the test says."""
    ours, theirs = socket.socketpair()
    peer = Peer(*await asyncio.open_unix_connection(sock=theirs))
    await peer.say(HELLO)
    sandbox = await Sandbox.open(*await asyncio.open_unix_connection(sock=ours))
    assert (await peer.hear()).fields == {"protocol": 1}
    yield sandbox, peer
    await sandbox.close()
    await peer.close()


def raw(header: bytes, payload: bytes = b"", header_size: int | None = None, payload_size: int | None = None) -> bytes:
    sizes = (
        len(header) if header_size is None else header_size,
        len(payload) if payload_size is None else payload_size,
    )
    return struct.pack(">II", *sizes) + header + payload


BROKEN: dict[str, Frame | bytes] = {
    "garbage": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "header of 4 GB": raw(b"{}", header_size=2**32 - 1),
    "payload of 4 GB": raw(b"{}", payload_size=2**32 - 1),
    "header over its cap": raw(b" " * 65537),
    "not JSON": raw(b"{nonsense}"),
    "not UTF-8": raw(b'{"id":1,"kind":"\xff"}'),
    "a list": raw(b"[]"),
    "deep": raw(b"[" * 60_000),
    "long number": raw(b'{"id":' + b"9" * 60_000 + b"}"),
    "no id": raw(b'{"kind":"exit"}'),
    "id is true": raw(b'{"id":true,"kind":"exit"}'),
    "negative id": raw(b'{"id":-1,"kind":"exit"}'),
    "id never used": Frame(99, "stdout"),
    "second hello": HELLO,
    "unknown kind": Frame(1, "surprise"),
    "kind of another request": Frame(1, "data"),
    "wrong last frame": Frame(1, "done"),
    "exit without fields": Frame(1, "exit"),
    "exit with both": Frame(1, "exit", {"code": 0, "signal": 9, "timed_out": False}),
    "exit with neither": Frame(1, "exit", {"code": None, "signal": None, "timed_out": False}),
    "exit code of a text": Frame(1, "exit", {"code": "0", "signal": None, "timed_out": False}),
    "exit code true": Frame(1, "exit", {"code": True, "signal": None, "timed_out": False}),
    "exit code 256": Frame(1, "exit", {"code": 256, "signal": None, "timed_out": False}),
    "timed out by text": Frame(1, "exit", {"code": 0, "signal": None, "timed_out": "no"}),
    "unknown error": Frame(1, "error", {"code": "SystemExit", "message": ""}),
    "error without message": Frame(1, "error", {"code": "PathRefused"}),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_broken_frame_is_a_protocol_error_and_ends_the_sandbox(
    hostile: tuple[Sandbox, Peer], name: str
) -> None:
    sandbox, peer = hostile
    run = asyncio.create_task(sandbox.run(["true"], timeout=1000))
    other = asyncio.create_task(sandbox.get("file", max_bytes=10))
    assert [(await peer.hear()).kind, (await peer.hear()).kind] == ["run", "get"]
    await peer.say(BROKEN[name])
    for task in (run, other):
        with pytest.raises(ProtocolError):
            await task
    with pytest.raises(ProtocolError):
        await sandbox.run(["true"], timeout=10)


@pytest.mark.parametrize("end", [b"", b"\0\0", raw(b'{"id":1', header_size=500)])
async def test_a_closed_connection_is_a_lost_sandbox(hostile: tuple[Sandbox, Peer], end: bytes) -> None:
    sandbox, peer = hostile
    run = asyncio.create_task(sandbox.run(["true"], timeout=1000))
    await peer.hear()
    await peer.say(end)
    await peer.close()
    with pytest.raises(SandboxLost, match="gone away"):
        await run


async def test_more_than_was_asked_for_is_a_protocol_error(hostile: tuple[Sandbox, Peer]) -> None:
    sandbox, peer = hostile
    get = asyncio.create_task(sandbox.get("file", max_bytes=10))
    await peer.hear()
    await peer.say(Frame(1, "data", payload=b"x" * 11))
    with pytest.raises(ProtocolError, match="more than was asked for"):
        await get


@pytest.mark.parametrize(
    "entry",
    [b"", b"[", b"{}", b'["a", "file"]', b'["a", "file", -1.5]', b'["a", "door", 0]', b'[1, "file", 0]', b"[" * 5_000],
)
async def test_an_entry_that_is_none_or_one_too_many_is_a_protocol_error(
    hostile: tuple[Sandbox, Peer], entry: bytes
) -> None:
    sandbox, peer = hostile
    find = asyncio.create_task(sandbox.find(".", "*", max_entries=1))
    await peer.hear()
    good = b'["a", "file", 1]'
    await peer.say(*(Frame(1, "data", payload=payload) for payload in ((entry,) if entry else (good, good))))
    with pytest.raises(ProtocolError, match=r"an entry that is none|more than was asked for"):
        await find


async def test_a_sandbox_that_never_answers_is_lost(
    hostile: tuple[Sandbox, Peer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that goes on sending output for ever: it is the end that counts."""
    monkeypatch.setattr(client, "END_LIMIT", 0.2)
    sandbox, peer = hostile
    run = asyncio.create_task(sandbox.run(["true"], timeout=0.1))
    while not run.done():
        await asyncio.wait({run}, timeout=0.01)
        await asyncio.gather(peer.say(Frame(1, "stdout", payload=b"x")), return_exceptions=True)
    with pytest.raises(SandboxLost, match="did not answer"):
        await run
    with pytest.raises(SandboxLost, match="did not end"):
        await sandbox.run(["true"], timeout=10)


async def test_late_frames_of_a_cancelled_request_do_no_harm(hostile: tuple[Sandbox, Peer]) -> None:
    sandbox, peer = hostile
    run = asyncio.create_task(sandbox.run(["true"], timeout=1000))
    assert (await peer.hear()).kind == "run"
    run.cancel()
    assert (await peer.hear()).kind == "cancel"
    end = Frame(1, "exit", {"code": None, "signal": 15, "timed_out": False})
    await peer.say(Frame(1, "stdout", payload=b"x"), end, Frame(1, "stdout", payload=b"late"), end)
    with pytest.raises(asyncio.CancelledError):
        await run
    restore = asyncio.create_task(sandbox.restore(b"", max_bytes=10))
    assert (await peer.hear()).kind == "restore"
    await peer.say(Frame(2, "error", {"code": "ArchiveRefused", "message": "because"}))
    with pytest.raises(ArchiveRefused, match="because"):
        await restore


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (Frame(0, "hello", {"protocol": 2, "sealed": True, "reason": ""}), "version 2 .* this side version 1"),
        (Frame(0, "hello", {"protocol": "1"}), "`protocol` of a `hello` frame must be of type int"),
        (Frame(0, "welcome"), "first frame must be `hello`"),
    ],
)
async def test_a_sandbox_of_another_version_is_refused(first: Frame, message: str) -> None:
    ours, theirs = socket.socketpair()
    peer = Peer(*await asyncio.open_unix_connection(sock=theirs))
    await peer.say(first)
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    with pytest.raises(ProtocolError, match=message):
        await Sandbox.open(reader, writer)
    await peer.close()


@pytest.mark.parametrize("closes", [True, False])
async def test_a_sandbox_that_does_not_say_hello_is_lost(closes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HELLO_LIMIT", 0.1)
    ours, theirs = socket.socketpair()
    peer = Peer(*await asyncio.open_unix_connection(sock=theirs))
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    if closes:
        await peer.close()
    with pytest.raises(SandboxLost, match="hello"):
        await Sandbox.open(reader, writer)
    await peer.close()


@given(st.binary(max_size=200), st.lists(st.integers(1, 40)))
async def test_any_bytes_are_a_frame_or_a_protocol_error(data: bytes, cuts: list[int]) -> None:
    reader = asyncio.StreamReader()
    reader.feed_data(data)
    reader.feed_eof()
    with contextlib.suppress(ProtocolError):  # Any other error fails.
        while (frame := await read_frame(reader)) is not None:
            assert isinstance(frame.kind, str)


@pytest.fixture
async def server(workspace: Path, tmp_path: Path) -> AsyncIterator[Peer]:
    """The real server, with an agent played by the test."""
    connected: asyncio.Queue[Peer] = asyncio.Queue()
    listener = await asyncio.start_unix_server(
        lambda *streams: connected.put_nowait(Peer(*streams)), tmp_path / "agent"
    )
    options = ("--connect", str(tmp_path / "agent"), "--workspace", str(workspace), "--seal", "available")
    process = await asyncio.create_subprocess_exec(sys.executable, "-I", "-m", "pilothouse.tools.sandbox", *options)
    peer = await connected.get()
    yield peer
    await peer.close()
    await process.wait()
    listener.close()
    await listener.wait_closed()


async def test_the_server_refuses_an_agent_of_another_version(server: Peer) -> None:
    assert (await server.hear()).fields["protocol"] == 1
    await server.say(Frame(0, "hello", {"protocol": 2}))
    refusal = await server.hear()
    assert (refusal.id, refusal.kind) == (0, "error")
    assert "version 2 of the sandbox protocol, this side version 1" in refusal.get("message", str)


@pytest.mark.parametrize(
    "wrong",
    [
        [Frame(1, "reboot")],
        [Frame(1, "get", {"path": "a", "max_bytes": 1}), Frame(1, "get", {"path": "a", "max_bytes": 1})],
        [Frame(1, "put", {"path": "a", "mode": 0})] + [Frame(1, "data")] * 5,
        [b"\xff" * 8],
    ],
    ids=["unknown request", "id used twice", "body without waiting", "garbage"],
)
async def test_the_server_ends_at_a_broken_agent(server: Peer, wrong: list[Frame | bytes]) -> None:
    await server.hear()
    await server.say(Frame(0, "hello", {"protocol": 1}), *wrong)
    while (frame := await server.hear()).id != 0:
        pass
    assert frame.fields["code"] == "ProtocolError"


async def test_an_agent_that_does_not_read_stops_the_command_not_the_server(server: Peer, workspace: Path) -> None:
    """The pipes are full, so a command that writes for ever comes to a stand; its time limit still ends it."""
    await server.hear()
    fields = {"argv": ["/bin/sh", "-c", "cat /dev/zero"], "cwd": ".", "env": {}, "timeout": 1.0, "stdin": False}
    await server.say(Frame(0, "hello", {"protocol": 1}), Frame(1, "run", fields))
    await asyncio.sleep(1.5)  # Longer than the command may take: the agent reads nothing of it meanwhile.
    size = 0
    while (frame := await server.hear()).kind == "stdout":
        size += len(frame.payload)
    assert frame.fields == {"code": None, "signal": 15, "timed_out": True}
    assert 0 < size < 10_000_000


async def test_a_command_has_no_variable_of_a_server_that_was_started_with_many(server: Peer) -> None:
    """As in a Pod, where the kubelet gives every container the addresses of the namespace's Services."""
    assert len(os.environ) > 5
    await server.hear()
    fields = {"argv": ["env"], "cwd": ".", "env": {}, "timeout": 10.0, "stdin": False}
    await server.say(Frame(0, "hello", {"protocol": 1}), Frame(1, "run", fields))
    output = b""
    while (frame := await server.hear()).kind != "exit":
        output += frame.payload
    assert {line.split("=")[0] for line in output.decode().splitlines()} == {"PATH", "HOME", "LANG", "TERM"}


CONNECT = "import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); sys.stdin.read()"


async def test_only_the_expected_peer_may_connect(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as stranger:
        listener.setblocking(False)
        listener.bind(str(tmp_path / "agent"))
        listener.listen()
        stranger.connect(str(tmp_path / "agent"))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-I", "-c", CONNECT, str(tmp_path / "agent"), stdin=asyncio.subprocess.PIPE
        )
        with await admit(listener, lambda peer: peer.process == process.pid) as accepted:
            peer = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        assert struct.unpack("3i", peer)[0] == process.pid
        assert stranger.recv(1) == b"", "the stranger's connection was closed"
        await process.communicate(b"")
