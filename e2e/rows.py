"""What the database has recorded of a workflow's runs: the truth, where status is only a summary."""

from dataclasses import dataclass
from typing import NamedTuple

from e2e.release import Release


class RunRow(NamedTuple):
    """A run; `key` is the digest of what the user set."""

    number: int
    state: str
    key: str


class AttemptRow(NamedTuple):
    """One try of a step; `carrier` is the UID of its Pod."""

    path: str
    number: int
    state: str
    carrier: str


class EventRow(NamedTuple):
    """What happened; `path` is empty where it happened to the run."""

    type: str
    path: str


@dataclass(frozen=True)
class Rows:
    """The rows of a workflow, by the name of its namespace."""

    release: Release
    namespace: str
    workflow: str

    def runs(self) -> list[RunRow]:
        """Its runs, the oldest first."""
        found = self._of("SELECT number, state, run_key FROM runs WHERE {which} ORDER BY created_at, number")
        return [RunRow(int(number), state, key) for number, state, key in found]

    def attempts(self, run: int = 1) -> list[AttemptRow]:
        """The attempts of a run, in the order in which they began."""
        query = (
            "SELECT path, a.number, a.state, coalesce(carrier, '') FROM attempts AS a JOIN runs ON a.run = runs.id "
            "WHERE {which} AND runs.number = %s ORDER BY a.created_at, path"
        )
        found = self._of(query, str(run))
        return [AttemptRow(path, int(number), state, carrier) for path, number, state, carrier in found]

    def events(self, run: int = 1) -> list[EventRow]:
        """The events of a run in their order. Their numbers have no gap."""
        query = (
            "SELECT seq, type, coalesce(path, '') FROM events JOIN runs ON run = runs.id "
            "WHERE {which} AND runs.number = %s ORDER BY seq"
        )
        found = self._of(query, str(run))
        assert [int(seq) for seq, *_ in found] == list(range(1, len(found) + 1))
        return [EventRow(type_, path) for _, type_, path in found]

    def _of(self, query: str, *values: str) -> list[list[str]]:
        which = "namespace = %s AND workflow = %s"
        return self.release.sql(query.format(which=which), self.namespace, self.workflow, *values)
