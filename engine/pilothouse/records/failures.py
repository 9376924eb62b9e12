"""The failure taxonomy: every failure has a code, and the code says whether trying again can help."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class FailureCode(StrEnum):
    """What kind of thing went wrong."""

    ENV = "F-ENV"
    """The setup: a missing dependency, file or permission."""
    INP = "F-INP"
    """Bad input: a parameter, an argument or an expression."""
    EXE = "F-EXE"
    """The work itself failed while it ran, as a command with an exit code does."""
    TMO = "F-TMO"
    """A time limit passed."""
    RES = "F-RES"
    """Memory, disk, network or a size limit."""
    SEC = "F-SEC"
    """Refused by a policy or by a person."""
    DEP = "F-DEP"
    """Another service failed, as a model provider does."""
    VAL = "F-VAL"
    """An output did not satisfy what was declared of it."""
    REV = "F-REV"
    """A reviewer rejected it."""
    UNK = "F-UNK"
    """Not classified, or the outcome is not known."""

    @property
    def retryable(self) -> bool:
        """Whether the same attempt may succeed when it is made again."""
        return self in _RETRYABLE


_RETRYABLE = frozenset({FailureCode.ENV, FailureCode.EXE, FailureCode.TMO, FailureCode.RES, FailureCode.DEP})

OUTCOME_UNKNOWN = "OutcomeUnknown"
"""The reason of a failure after which nobody knows whether the side effect happened."""

MESSAGE_LIMIT = 2_000
"""Characters of a failure's message that are kept."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure: its code, a CamelCase reason where one is defined, and a sentence for people."""

    code: FailureCode
    message: str
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        body = {"code": self.code.value, "message": self.message[:MESSAGE_LIMIT]}
        return body | ({"reason": self.reason} if self.reason else {})

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> Self:
        return cls(FailureCode(body["code"]), str(body["message"]), str(body.get("reason", "")))

    def __str__(self) -> str:
        return f"{self.code.value} {self.reason + ': ' if self.reason else ''}{self.message}"


class Failed(Exception):  # noqa: N818 - it carries a Failure, it is not another name for one
    """Raised where work ends in a classified failure."""

    def __init__(self, code: FailureCode, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.failure = Failure(code, message, reason)
