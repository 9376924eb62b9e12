"""The wire protocol between an agent and its sandbox, version 1.

A frame is two 32-bit big-endian lengths (header, payload), a header (JSON object with `id` and `kind`) and a payload
of raw bytes. Frame 0 belongs to the connection, any other id to one request; requests run side by side.

    sandbox -> agent   hello {protocol, sealed, reason}           first frame of each side; another version is refused
    agent -> sandbox   hello {protocol}
    agent -> sandbox   run {argv, cwd, env, timeout, stdin}       put {path, mode}     get {path, max_bytes}
                       remove {path}                              find {path, pattern, max_entries}
                       snapshot {max_bytes}                       restore {max_bytes}
                       data | end                                 the body of put and restore, the input of run
                       cancel                                     the request still ends with its last frame
    sandbox -> agent   more                                       the last `data` was used, the next may come
                       data | stdout | stderr                     output, as it comes
                       exit {code, signal, timed_out} | done {}   the last frame of a request
                       error {code, message}                      or this one; `code` names a class of errors.ANSWERS

A body is sent one frame at a time, each after a `more`: so neither side ever holds more than a frame of it, and a
command that does not read its input cannot keep a `cancel` from being heard.
"""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pilothouse.tools.sandbox.errors import ProtocolError, TooLarge

VERSION = 1
MAX_HEADER = 64 * 1024
MAX_PAYLOAD = 1024 * 1024
CHUNK = 64 * 1024
"""Bytes in one frame of a body: a pipe's usual capacity."""
MAX_TIMEOUT = 7 * 24 * 3600.0
"""Seconds that a command may take at most."""

_LENGTHS = struct.Struct(">II")
_MAX_ID = 2**53

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Frame:
    """One message. The getters raise `ProtocolError`: a frame's fields are as untrusted as its sender."""

    id: int
    kind: str
    fields: dict[str, object] = field(default_factory=dict)
    payload: bytes = b""

    def get(self, name: str, kind: type[T]) -> T:
        value = self.fields.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ProtocolError(f"`{name}` of a `{self.kind}` frame must be of type {kind.__name__}")
        return value

    def optional_int(self, name: str) -> int | None:
        return None if self.fields.get(name) is None else self.get(name, int)

    def texts(self, name: str) -> list[str]:
        return [_text(item, name) for item in self.get(name, list)]

    def text_map(self, name: str) -> dict[str, str]:
        return {key: _text(value, name) for key, value in self.get(name, dict).items()}


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ProtocolError(f"`{name}` must hold texts only")
    return value


def encode(frame: Frame) -> bytes:
    """The frame's bytes; raises `TooLarge` when it is over a cap of the protocol."""
    header = json.dumps({**frame.fields, "id": frame.id, "kind": frame.kind}, separators=(",", ":")).encode()
    if len(header) > MAX_HEADER:
        raise TooLarge(
            f"a `{frame.kind}` request takes {len(header)} bytes, at most {MAX_HEADER} fit: put long text into a file"
        )
    if len(frame.payload) > MAX_PAYLOAD:
        raise TooLarge(f"a frame's payload of {len(frame.payload)} bytes is over {MAX_PAYLOAD}")
    return _LENGTHS.pack(len(header), len(frame.payload)) + header + frame.payload


async def read_frame(reader: asyncio.StreamReader) -> Frame | None:
    """The next frame; None when the other side has closed, also in the middle of a frame."""
    try:
        header_size, payload_size = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
        if header_size > MAX_HEADER or payload_size > MAX_PAYLOAD:
            raise ProtocolError(f"a frame of {header_size} + {payload_size} bytes is over the protocol's caps")
        header = await reader.readexactly(header_size)
        payload = await reader.readexactly(payload_size)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    return _decode(header, payload)


def _decode(header: bytes, payload: bytes) -> Frame:
    try:
        fields = json.loads(header)
    except (ValueError, RecursionError) as error:
        raise ProtocolError("a frame's header is not JSON") from error
    if not isinstance(fields, dict):
        raise ProtocolError("a frame's header is not a JSON object")
    number, kind = fields.pop("id", None), fields.pop("kind", None)
    if type(number) is not int or not 0 <= number <= _MAX_ID or not isinstance(kind, str):
        raise ProtocolError("a frame's header lacks a valid `id` and `kind`")
    return Frame(number, kind, fields, payload)


def check_version(hello: Frame) -> None:
    """Raise `ProtocolError` unless the other side's first frame is a `hello` of this version."""
    if hello.kind != "hello":
        raise ProtocolError("the first frame must be `hello`")
    if (version := hello.get("protocol", int)) != VERSION:
        raise ProtocolError(
            f"the other side speaks version {version} of the sandbox protocol, this side version {VERSION}: "
            "agent and sandbox must run the same release"
        )


def pieces(data: bytes) -> Iterator[bytes]:
    """The data in chunks that fit a frame; nothing for no data."""
    view = memoryview(data)
    for start in range(0, len(view), CHUNK):
        yield bytes(view[start : start + CHUNK])


async def as_body(data: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """A body in chunks that fit a frame, from bytes or from a stream of bytes."""
    if isinstance(data, bytes):
        for piece in pieces(data):
            yield piece
        return
    async for part in data:
        for piece in pieces(part):
            yield piece
