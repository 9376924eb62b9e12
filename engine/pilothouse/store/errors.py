"""How a store says no.

StoreError
├── Conflict          a guard did not hold: somebody else decided; read again
│   ├── Superseded    a write of an attempt that is no longer the open one
│   ├── Deposed       a write of a leader that is no longer the leader
│   ├── SessionBusy   another open attempt holds the session
│   ├── InvalidState  nobody is at work on the session whom the message could reach
│   └── QueueNotEmpty messages wait for an attempt that would end; deliver them first
├── NotFound
├── StoreUnavailable  the server is away; nothing was decided, try again
└── StoreUnusable     the server answers, but must not be used as it is; the message says why
"""


class StoreError(Exception):
    """The base of all that a store raises by intent."""


class Conflict(StoreError):  # noqa: N818
    """A guard of a write did not hold, and nothing was written."""


class Superseded(Conflict):
    """The attempt is not the open one of its step; whoever holds it must end."""


class Deposed(Conflict):
    """A newer leader has written to this run; whoever holds the old leadership must stop acting."""


class SessionBusy(Conflict):
    """Another open attempt holds the session; it may be opened once that one has ended."""


class InvalidState(Conflict):
    """No attempt is at work on the session, so a message that is for the one at work is not accepted."""


class QueueNotEmpty(Conflict):
    """Messages wait for the attempt that would end; it delivers them first, and then ends."""


class NotFound(StoreError):  # noqa: N818
    """There is no such row for this tenant."""


class StoreUnavailable(StoreError):  # noqa: N818
    """The store cannot be reached now. Nothing is known to be written; work waits and tries again."""


class StoreUnusable(StoreError):  # noqa: N818
    """The store must not be used as it is (schema, owner, version, disk); the message says what to do."""
