"""The sessions of one namespace, wherever they are kept, and which of them is meant."""

from dataclasses import dataclass
from uuid import UUID

from pilothouse.cli.command import CommandError
from pilothouse.records.sessions import Entry, Session, SessionHead
from pilothouse.store.errors import NotFound
from pilothouse.store.ports import SessionStore
from pilothouse.store.rules import LEAF, named


def id_of(name: str) -> UUID | None:
    """The id that the name is, None where it is none. What could be an id is never taken for a name."""
    try:
        return UUID(name) if len(name) == len(str(UUID(int=0))) else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Sessions:
    """`tenant` has the namespace."""

    namespace: str
    tenant: UUID
    store: SessionStore

    def id(self, name: str) -> UUID:
        """The id of the session that is called so, whether it is there or not."""
        return id_of(name) or named(self.tenant, name)

    async def find(self, name: str) -> SessionHead:
        """Raises CommandError where there is none."""
        try:
            return await self.store.session(self.tenant, self.id(name))
        except NotFound:
            raise self.missing(name) from None

    async def whole(self, head: SessionHead) -> Session:
        """The session with every entry that it has by now."""
        entries: list[Entry] = []
        while page := await self.store.entries(self.tenant, head.id, after=len(entries)):
            entries += page
        return Session(head.id, _leaf(entries), tuple(entries))

    def missing(self, name: str) -> CommandError:
        return CommandError(
            f"there is no session `{name}` in namespace {self.namespace}; see `pilothouse session list`"
        )


def _leaf(entries: list[Entry]) -> UUID | None:
    """Where the next entry would hang."""
    if not entries or entries[-1].type != LEAF:
        return entries[-1].id if entries else None
    target = entries[-1].body["targetId"]
    return None if target is None else UUID(target)
