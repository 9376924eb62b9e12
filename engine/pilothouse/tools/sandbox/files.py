"""The requests about files: `put`, `get`, `remove`, `find`, `snapshot` and `restore`.

They read and write a chunk at a time and let other requests go on in between. There are no threads here: a process
that forks, as this one does for each command, must not have any.
"""

import asyncio
import json
import os

from pilothouse.tools.sandbox.errors import TooLarge
from pilothouse.tools.sandbox.protocol import CHUNK
from pilothouse.tools.sandbox.requests import Request
from pilothouse.tools.sandbox.workspace import Workspace

MAX_DIRECTORIES = 20_000
"""Directories that a `find` looks into, at most."""


async def put(request: Request, workspace: Workspace) -> None:
    frame = request.frame
    with workspace.replacing(frame.get("path", str), frame.get("mode", int)) as fd:
        async for chunk in request.body():
            _write(fd, chunk)
    await request.send("done")


async def get(request: Request, workspace: Workspace) -> None:
    """Send the file's first `max_bytes`; `done` says its size and mode."""
    with workspace.reading(request.frame.get("path", str)) as fd:
        status = os.fstat(fd)
        left = request.frame.get("max_bytes", int)
        while left > 0 and (chunk := os.read(fd, min(left, CHUNK))):
            left -= len(chunk)
            await request.send("data", payload=chunk)
    await request.send("done", {"size": status.st_size, "mode": status.st_mode & 0o777})


async def remove(request: Request, workspace: Workspace) -> None:
    workspace.remove(request.frame.get("path", str))
    await request.send("done")


async def found(request: Request, workspace: Workspace) -> None:
    """Send each entry as JSON: path, kind, size; `done` says whether there are more."""
    from pilothouse.tools.sandbox.listing import find  # Here, so that a sandbox starts without it.

    frame = request.frame
    entries, directories = frame.get("max_entries", int), MAX_DIRECTORIES
    for entry in find(workspace, frame.get("path", str), frame.get("pattern", str)):
        if entry is None:
            directories -= 1
            await asyncio.sleep(0)
        else:
            entries -= 1
        if min(entries, directories) < 0:
            await request.send("done", {"more": True})
            return
        if entry is not None:
            await request.send("data", payload=json.dumps([entry.path, entry.kind, entry.size]).encode())
    await request.send("done", {"more": False})


async def snapshot(request: Request, workspace: Workspace) -> None:
    from pilothouse.tools.sandbox.archive import pack  # Here, so that a sandbox starts without it.

    for chunk in pack(workspace, request.frame.get("max_bytes", int)):
        await request.send("data", payload=chunk)
    await request.send("done")


async def restore(request: Request, workspace: Workspace) -> None:
    from pilothouse.tools.sandbox.archive import unpack  # Here, so that a sandbox starts without it.

    limit = request.frame.get("max_bytes", int)
    with workspace.scratch() as archive:
        async for chunk in request.body():
            archive.write(chunk)
            if archive.tell() > limit:
                raise TooLarge(f"the archive is over its limit of {limit} bytes")
        for _ in unpack(workspace, archive):
            await asyncio.sleep(0)
    await request.send("done")


def _write(fd: int, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[os.write(fd, view) :]
