"""The agent's handle of a sandbox. What a sandbox says is untrusted: checked, bounded, and given a deadline."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from pilothouse.tools.sandbox.connection import Connection
from pilothouse.tools.sandbox.errors import SandboxLost
from pilothouse.tools.sandbox.exchanges import Download, Entry, Exchange, FileDownload, Listed, OnOutput, RunExchange
from pilothouse.tools.sandbox.output import MAX_OUTPUT, RunResult
from pilothouse.tools.sandbox.protocol import MAX_TIMEOUT, Frame, as_body

ANSWER_LIMIT = 300.0
"""Seconds within which a file operation must be answered."""
END_LIMIT = 30.0
"""Seconds within which a command that was cancelled, or whose time is over, must have ended."""

_NO_ENVIRONMENT: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class FileContent:
    """The beginning of a file (all of it unless `truncated`), its whole size in bytes and its permission bits."""

    data: bytes
    size: int
    mode: int

    @property
    def truncated(self) -> bool:
        return len(self.data) < self.size


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries of the workspace. `more` says that some were left out."""

    entries: tuple[Entry, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The workspace as a tar archive. The same files give the same bytes; `digest` is `sha256:` and 64 hex digits."""

    archive: bytes
    digest: str


class Sandbox:
    """Runs commands and file operations in a sandbox; any number of them at a time.

    All methods raise `SandboxLost` when the sandbox has gone away or did not answer in time, and `ProtocolError` when
    it broke the protocol; after either, every further call fails alike. Other errors leave the sandbox usable.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Self:
        """Greet the sandbox that has connected; raises `ProtocolError` if it speaks another version."""
        return cls(await Connection.open(reader, writer))

    @property
    def sealed(self) -> bool:
        """Whether the sandbox says that it has sealed itself."""
        return self._connection.sealed

    @property
    def not_sealed_reason(self) -> str:
        """Why it is not sealed; empty if it is."""
        return self._connection.reason

    async def current(self) -> Self:
        """This sandbox while it can be used, with which it is one of `sandboxed.Sandboxes`; raises what ended it."""
        self._connection.check()
        return self

    async def ended(self) -> None:
        """Wait until it has gone away, broke the protocol or was closed."""
        await self._connection.ended()

    async def run(
        self,
        command: Sequence[str] | str,
        *,
        timeout: float,  # noqa: ASYNC109 (the sandbox enforces it, so that it can kill and still report)
        cwd: str = ".",
        env: Mapping[str, str] = _NO_ENVIRONMENT,
        stdin: bytes | AsyncIterator[bytes] | None = None,
        max_output: int = MAX_OUTPUT,
        on_output: OnOutput | None = None,
    ) -> RunResult:
        """Run an argument list, or a text by /bin/sh, and wait for the end of it and of all that it started.

        `timeout` in seconds; when it is over, or when this call is cancelled, the command gets SIGTERM, and two seconds
        later all that is left of it SIGKILL. `cwd` is relative to the workspace. The environment is PATH, HOME (the
        workspace), LANG, TERM and `env`. `max_output` bytes of each stream are kept; `on_output` sees every byte.
        Raises `CommandRefused` if it could not be started.
        """
        if not command or not 0 < timeout <= MAX_TIMEOUT:
            raise ValueError(f"a command must not be empty, its timeout over 0 and up to {MAX_TIMEOUT:g} seconds")
        argv = ["/bin/sh", "-c", command] if isinstance(command, str) else list(command)
        exchange = RunExchange(max_output, on_output)
        fields = {"argv": argv, "cwd": cwd, "env": dict(env), "timeout": float(timeout), "stdin": stdin is not None}
        body = None if stdin is None else as_body(stdin)
        return exchange.result(await self._perform(exchange, "run", fields, body, timeout + END_LIMIT))

    async def put(self, path: str, data: bytes | AsyncIterator[bytes], *, mode: int = 0o600) -> None:
        """Make or replace a file, all at once; missing parents are made. A link at the path is replaced, not followed.

        Raises `PathRefused` for a path that leads out of the workspace or names a directory.
        """
        await self._perform(Exchange(), "put", {"path": path, "mode": mode}, as_body(data))

    async def get(self, path: str, *, max_bytes: int) -> FileContent:
        """The first `max_bytes` of a file; raises `PathNotFound`, or `PathRefused` if it is not a plain file inside."""
        exchange = FileDownload(max_bytes)
        last = await self._perform(exchange, "get", {"path": path, "max_bytes": max_bytes})
        return FileContent(exchange.data, last.get("size", int), last.get("mode", int))

    async def remove(self, path: str) -> None:
        """Remove a file, or a link itself; raises `PathNotFound`, or `PathRefused` for a directory."""
        await self._perform(Exchange(), "remove", {"path": path})

    async def find(self, path: str, pattern: str, *, max_entries: int) -> Listing:
        """What is below the directory `path` and matches the pattern, whose parts between `/` are as a shell has them,
        and `**` any number of directories; sorted by path. Links are listed and not followed."""
        exchange = Listed(max_entries)
        fields = {"path": path, "pattern": pattern, "max_entries": max_entries}
        last = await self._perform(exchange, "find", fields)
        return Listing(tuple(exchange.entries), last.get("more", bool))

    async def snapshot(self, *, max_bytes: int) -> Snapshot:
        """The workspace as an archive; raises `TooLarge` if that would be over `max_bytes`.

        Links are kept as links; sockets, FIFOs and devices are left out. The digest is computed here.
        """
        exchange = Download(max_bytes)
        await self._perform(exchange, "snapshot", {"max_bytes": max_bytes})
        return Snapshot(exchange.data, exchange.digest)

    async def restore(self, archive: bytes, *, max_bytes: int) -> None:
        """Make the workspace equal to a snapshot; what the snapshot does not hold is removed.

        Raises `ArchiveRefused` or `TooLarge` before anything is changed.
        """
        await self._perform(Exchange(), "restore", {"max_bytes": max_bytes}, as_body(archive))

    async def close(self) -> None:
        """End the connection, and with it the sandbox and all that runs in it."""
        await self._connection.close()

    async def _perform(
        self,
        exchange: Exchange,
        kind: str,
        fields: Mapping[str, object],
        body: AsyncIterator[bytes] | None = None,
        limit: float = ANSWER_LIMIT,
    ) -> Frame:
        number = self._connection.begin(exchange, kind, fields)
        try:
            async with asyncio.timeout(limit) as deadline:
                return await self._converse(number, exchange, body)
        except TimeoutError as error:
            if not deadline.expired():
                raise  # From the caller's own stream.
            raise SandboxLost(f"the sandbox did not answer `{kind}` within {limit:g} s") from error
        finally:
            if not exchange.ended.done():
                await self._give_up(number, exchange)
            self._connection.finish(number)

    async def _converse(self, number: int, exchange: Exchange, body: AsyncIterator[bytes] | None) -> Frame:
        """Send the body, if any, until the last frame has come; an error on this side is raised at once."""
        upload = asyncio.create_task(self._upload(number, exchange, body)) if body is not None else None
        waiting: set[asyncio.Future[Frame] | asyncio.Future[None]] = {exchange.ended, exchange.trouble}
        waiting |= {upload} if upload else set()
        try:
            while not exchange.ended.done():
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for item in done:
                    item.result()
            return exchange.ended.result()
        finally:
            exchange.trouble.cancel()
            if upload:
                upload.cancel()
                await asyncio.gather(upload, return_exceptions=True)

    async def _upload(self, number: int, exchange: Exchange, body: AsyncIterator[bytes]) -> None:
        async for chunk in body:
            await exchange.turn_to_send()
            await self._connection.send(number, "data", chunk)
        await exchange.turn_to_send()
        await self._connection.send(number, "end")

    async def _give_up(self, number: int, exchange: Exchange) -> None:
        """Cancel the request and wait for its end; a sandbox that does not end it is lost."""
        try:
            async with asyncio.timeout(END_LIMIT):
                await self._connection.send(number, "cancel")
                await asyncio.wait({exchange.ended})
        except TimeoutError:
            self._connection.fail(SandboxLost(f"the sandbox did not end a cancelled request within {END_LIMIT:g} s"))
