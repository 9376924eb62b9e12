"""`session export` and `session import`: sessions as files."""

import asyncio
import sys
from pathlib import Path
from uuid import UUID

from pilothouse.agents.session import Imported, SessionError, export_session, read_jsonl, write_jsonl
from pilothouse.agents.session.draft import drafted
from pilothouse.cli.command import CommandError, complete, tell
from pilothouse.cli.printing import print_text
from pilothouse.cli.reading import Source
from pilothouse.cli.sessions.reading import id_of
from pilothouse.store.errors import Conflict, StoreUnavailable
from pilothouse.workflows.commands.pod import WORK

STDIN = Path("-")


def export(source: Source, name: str, file: Path | None, namespace: str | None) -> int:
    """`pilothouse session export`."""

    async def command() -> int:
        async with source.sessions(namespace, id_of(name)) as sessions:
            session = await sessions.whole(await sessions.find(name))
        data = write_jsonl(export_session(session, WORK))
        await asyncio.to_thread(_write, file, data)
        return 0

    return complete(command)


def import_(source: Source, file: Path, name: str, namespace: str | None) -> int:
    """`pilothouse session import`."""

    async def command() -> int:
        if id_of(name):
            raise CommandError(f"--name {name} looks like an id, and would be taken for one; give another name")
        data = await asyncio.to_thread(_read, file)
        async with source.sessions(namespace) as sessions:
            session = sessions.id(name)
            try:
                entries, done = await drafted(session, read_jsonl(data))
                await sessions.store.import_session(sessions.tenant, name, entries)
            except SessionError as error:
                raise CommandError(f"{file}: {error}; nothing was imported") from None
            except Conflict as error:
                raise CommandError(f"{error}; nothing was imported") from None
            except StoreUnavailable as error:
                shown = "`pilothouse session list` shows whether it is there"
                raise CommandError(f"whether the session was imported is not known: {error}; {shown}") from None
        _report(name, session, len(entries), done)
        return 0

    return complete(command)


def _report(name: str, session: UUID, entries: int, done: Imported) -> None:
    for warning in done.warnings:
        tell(f"pilothouse: {warning}")
    if done.renamed:
        tell(f"pilothouse: {len(done.renamed)} entries had ids that are no UUIDs, and have new ones")
    if done.closed:
        tell(f"pilothouse: {done.closed} calls had no result, and have one that says so")
    print_text(f"imported as {name}: {entries} entries, id {session}")


def _read(file: Path) -> bytes:
    return sys.stdin.buffer.read() if file == STDIN else file.read_bytes()


def _write(file: Path | None, data: bytes) -> None:
    if file is not None:
        file.write_bytes(data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
