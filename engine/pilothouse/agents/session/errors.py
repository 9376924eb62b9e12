"""How a session says no."""

from typing import Literal, TypeAlias

SessionCode: TypeAlias = Literal[
    "not_found", "invalid_argument", "invalid_fork_target", "invalid_session", "invalid_entry"
]
CompactionCode: TypeAlias = Literal["nothing_to_compact", "summary_failed", "no_gain"]


class SessionError(Exception):
    """What was asked of a session cannot be done, and nothing was written. `code` is the agent harness's."""

    def __init__(self, code: SessionCode, message: str) -> None:
        super().__init__(message)
        self.code: SessionCode = code


class SummaryError(Exception):
    """A summariser has no summary to give; the message says why."""


class CompactionError(Exception):
    """The context was not compacted, and nothing was written. Asking the same again ends the same, unless a
    summary failed."""

    def __init__(self, code: CompactionCode, message: str) -> None:
        super().__init__(message)
        self.code: CompactionCode = code
