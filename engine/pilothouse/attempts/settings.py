"""What a Pod tells its agent's process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from pilothouse.records.runs import StepId
from pilothouse.tools.sandbox.pod import Door


class CannotStart(Exception):  # noqa: N818 - the outcome, as standard error says it
    """The process lacks something without which it can do nothing; the message names it and the remedy."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of the `agent` container: the Pod's token for the store API, the model's key, and other keys of Secrets
    as `<secret>/<key>`. All may change while the process runs, so they are read whenever they are needed. And the door
    of the sandbox."""

    token: Path = Path("/var/run/pilothouse/store/token")
    model_key: Path = Path("/var/run/pilothouse/model/key")
    door: Door = field(default_factory=Door)
    secrets: Path = Path("/var/run/pilothouse/secrets")


@dataclass(frozen=True, slots=True)
class Settings:
    """The environment of the `agent` container; none of it is secret.

    PILOTHOUSE_STORE_URL and PILOTHOUSE_STORE_CA_PEM   the store API, and the certificate (PEM text) that vouches for it
    PILOTHOUSE_WORK                                    the digest of the assignment, a blob of the tenant
    PILOTHOUSE_STEP, PILOTHOUSE_STEP_INDEX             the step's path, and its index (0 if absent)
    PILOTHOUSE_ATTEMPT_NUMBER                          the number of the step's attempt, from 1
    PILOTHOUSE_SANDBOX                                 `1` if the Pod has a sandbox
    """

    store_url: str
    store_ca: str
    work: str
    step: StepId
    number: int
    sandbox: bool

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        """Raises CannotStart naming the variable that is missing or wrong."""
        given = _Given(environment)
        return cls(
            store_url=given.text("PILOTHOUSE_STORE_URL"),
            store_ca=given.text("PILOTHOUSE_STORE_CA_PEM"),
            work=given.text("PILOTHOUSE_WORK"),
            step=StepId(given.text("PILOTHOUSE_STEP"), given.number("PILOTHOUSE_STEP_INDEX", "0")),
            number=given.number("PILOTHOUSE_ATTEMPT_NUMBER"),
            sandbox=environment.get("PILOTHOUSE_SANDBOX") == "1",
        )


@dataclass(frozen=True, slots=True)
class _Given:
    environment: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        value = self.environment.get(name) or default
        if not value:
            raise CannotStart(f"the variable {name} is missing; the operator sets it when it makes the Pod")
        return value

    def number(self, name: str, default: str = "") -> int:
        text = self.text(name, default)
        if not (text.isascii() and text.isdecimal()):
            raise CannotStart(f"the variable {name} must be a number, not {text[:40]!r}")
        return int(text)
