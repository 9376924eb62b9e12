"""Bytes by digest, each within its tenant."""

from uuid import UUID

from pilothouse.store.postgres.queries import queries
from pilothouse.store.postgres.statements import Statement
from pilothouse.store.rows import blob_ref

_SQL = queries("attempts")


def put_blob(tenant: UUID, data: bytes) -> Statement:
    params = {"tenant": tenant, "digest": blob_ref(data).digest, "data": data}
    return Statement(_SQL["put_blob"], params)


def get_blob(tenant: UUID, digest: str) -> Statement:
    """Finds no row also for what is no digest at all."""
    return Statement(_SQL["get_blob"], {"tenant": tenant, "digest": digest if digest.isprintable() else ""})
