"""Each trial has a database of its own in one server."""

from tests.store.fixtures import server_dsn

__all__ = ["server_dsn"]
