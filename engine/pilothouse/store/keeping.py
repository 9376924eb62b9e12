"""Keeping values: inline up to a size, beyond it as a blob; and having them back."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from pilothouse.records.values import INLINE_LIMIT, JSON, BlobRef, Inline, Stored, decode, encode
from pilothouse.store.ports import AttemptStore, Blobs

Put: TypeAlias = Callable[[bytes], Awaitable[BlobRef]]
"""Stores bytes as a blob of some tenant."""


async def keep(put: Put, name: str, value: JSON | BlobRef) -> Stored:
    """The value of that name as a row holds it. Raises ValueRefused for what cannot be stored faithfully."""
    if isinstance(value, BlobRef):
        return value
    text = encode(value, name)
    if len(text) <= INLINE_LIMIT:
        return Inline(value)
    return await put(text.encode())


async def keep_all(blobs: Blobs, tenant: UUID, values: Mapping[str, JSON | BlobRef]) -> dict[str, Stored]:
    """Each of the values by its name."""
    return {name: await keep(partial(blobs.put_blob, tenant), name, value) for name, value in values.items()}


async def keep_own(store: AttemptStore, values: Mapping[str, JSON | BlobRef]) -> dict[str, Stored]:
    """Each of an attempt's values by its name, in the attempt's tenant."""
    return {name: await keep(store.put_blob, name, value) for name, value in values.items()}


async def load(stored: Stored, get_blob: Callable[[str], Awaitable[bytes]]) -> Any:
    """The value, wherever it is kept; `get_blob` gives the bytes of a digest."""
    return stored.value if isinstance(stored, Inline) else decode(await get_blob(stored.digest))
