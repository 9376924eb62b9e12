"""`migrate`: brings the database to this version's schema."""

from pilothouse.cli.command import complete, tell
from pilothouse.cli.where import Where


def migrate(where: Where) -> int:
    """`pilothouse migrate`."""

    async def command() -> int:
        from pilothouse.store import postgres

        async with where.database() as dsn:
            applied = await postgres.migrate(dsn)
        tell("\n".join(f"applied {name}" for name in applied) or "nothing to do: the schema is this version's")
        return 0

    return complete(command)
