"""Keeping values: inline up to a size, beyond it as a blob."""

from collections.abc import Mapping
from uuid import UUID

from pilothouse.records.values import INLINE_LIMIT, JSON, BlobRef, Inline, Stored, encode
from pilothouse.store.ports import Blobs


async def keep(blobs: Blobs, tenant: UUID, value: JSON | BlobRef) -> Stored:
    """The value as a row holds it. Raises ValueRefused for what cannot be stored faithfully."""
    if isinstance(value, BlobRef):
        return value
    text = encode(value)
    if len(text) <= INLINE_LIMIT:
        return Inline(value)
    return await blobs.put_blob(tenant, text.encode())


async def keep_all(blobs: Blobs, tenant: UUID, values: Mapping[str, JSON | BlobRef]) -> dict[str, Stored]:
    """Each of the values by its name."""
    return {name: await keep(blobs, tenant, value) for name, value in values.items()}
