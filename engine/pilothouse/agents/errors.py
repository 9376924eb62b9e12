"""How an agent says no to what it is asked."""

from typing import Literal, TypeAlias

from pilothouse.store.errors import Conflict

AgentCode: TypeAlias = Literal[
    "busy", "invalid_state", "invalid_argument", "session", "hook", "compaction", "branch_summary"
]


class AgentError(Exception):
    """What was asked cannot be done. `code` is the agent harness's; what went wrong below is the cause."""

    def __init__(self, code: AgentCode, message: str) -> None:
        super().__init__(message)
        self.code: AgentCode = code


class Withdrawn(Conflict):
    """A message was taken back while it was on its way into the session. Nothing was written; go on without it."""
