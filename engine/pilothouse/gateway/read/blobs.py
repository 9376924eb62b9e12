"""Blobs on their way to a reader, in pieces: however large one is, the gateway holds little of it."""

from collections.abc import AsyncIterator
from uuid import UUID

from starlette.responses import Response, StreamingResponse

from pilothouse.records.values import BlobRef
from pilothouse.store.history import RunHistory

PIECE = 1024 * 1024
"""Bytes that are read from the store at a time."""


async def blob_answer(history: RunHistory, tenant: UUID, ref: BlobRef) -> Response:
    """The blob's bytes. Raises NotFound before anything is sent; an outage after that cuts the answer short, which
    its length shows."""
    size = await history.blob_size(tenant, ref.digest)
    headers = {"Cache-Control": "no-store", "Content-Length": str(size), "X-Content-Type-Options": "nosniff"}
    pieces = _pieces(history, tenant, ref.digest, size)
    return StreamingResponse(pieces, headers=headers, media_type="application/octet-stream")


async def _pieces(history: RunHistory, tenant: UUID, digest: str, size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, PIECE):
        yield await history.blob_piece(tenant, digest, start, PIECE)
