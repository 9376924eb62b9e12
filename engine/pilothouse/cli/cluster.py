"""A cluster as a source of runs and sessions, read through the gateway of its installation."""

import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pilothouse.cli.access import GATEWAY, Access, Target, open_access
from pilothouse.cli.command import CommandError
from pilothouse.cli.questions import Questions
from pilothouse.cli.reading import Reading
from pilothouse.cli.remote import RemoteRuns
from pilothouse.cli.sessions.reading import Sessions
from pilothouse.cli.sessions.remote import RemoteSessionStore

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster, and by whose token: a file's, or standard input's."""

    context: str | None
    kubeconfig: Path | None
    gateway: str | None
    token_file: str | None

    @asynccontextmanager
    async def reading(self, namespace: str | None) -> AsyncIterator[Reading]:
        async with self._access() as access:
            yield RemoteRuns(Questions(access), namespace or access.namespace)

    @asynccontextmanager
    async def sessions(self, namespace: str | None, only: UUID | None = None) -> AsyncIterator[Sessions]:
        async with self._access() as access:
            name = namespace or access.namespace
            store = RemoteSessionStore(Questions(access), name)
            yield Sessions(name, await store.tenant(only), store)

    def _access(self) -> AbstractAsyncContextManager[Access]:
        return open_access(Target(self.context, self.kubeconfig, self.gateway or GATEWAY, self._token()))

    def _token(self) -> str | None:
        if self.token_file is None:
            return None
        text = sys.stdin.read() if self.token_file == STDIN else Path(self.token_file).read_text(errors="replace")
        token = text.strip()
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise CommandError(f"--token-file {self.token_file}: what it holds is no token")
        return token
