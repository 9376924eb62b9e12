"""Attempt tokens: a short-lived proof, issued by any gateway of a database and verified by every other, that the
bearer carries out one attempt.

A token is a JWT (RFC 7519) signed with HS256 by the database's own key. Verified, in this order: the signature and
that the algorithm is that one; the time (`exp`, `iat`, both required); the audience; the type in the header, as
RFC 8725 section 3.11 has it, so that no other token of the same key is ever taken for one of these.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import jwt

from pilothouse.gateway.kubeapi import Unauthenticated
from pilothouse.records.runs import AttemptRef, RunRef, StepId

LIFETIME = timedelta(minutes=10)

_ALGORITHM = "HS256"
_AUDIENCE = "pilothouse-store-api"
_TYPE = "pilothouse-attempt+jwt"
_CLOCKS = timedelta(seconds=30)
"""How far the clocks of two gateways may be apart."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """The attempt that a token stands for, and its step: nothing else is within its reach."""

    ref: AttemptRef
    step: StepId


def issue(key: bytes, bearer: Bearer, now: datetime | None = None) -> str:
    """A token that is good for LIFETIME from now."""
    now = now or datetime.now(UTC)
    claims = {
        "aud": _AUDIENCE,
        "iat": now,
        "exp": now + LIFETIME,
        "tenant": str(bearer.ref.run.tenant),
        "run": str(bearer.ref.run.run),
        "attempt": str(bearer.ref.attempt),
        "fence": bearer.ref.fence,
        "path": bearer.step.path,
        "index": bearer.step.index,
    }
    return jwt.encode(claims, key, _ALGORITHM, {"typ": _TYPE})


def verify(key: bytes, token: str) -> Bearer:
    """The bearer, whose word is the token's alone. Raises Unauthenticated, whatever is wrong."""
    try:
        verified = jwt.decode_complete(
            token,
            key,
            algorithms=[_ALGORITHM],
            audience=_AUDIENCE,
            leeway=_CLOCKS,
            options={"require": ["exp", "iat", "aud"], "strict_aud": True},
        )
        if verified["header"].get("typ") != _TYPE:
            raise Unauthenticated("attempt token")
        return _bearer(verified["payload"])
    except (jwt.PyJWTError, ValueError, KeyError, TypeError):
        raise Unauthenticated("attempt token") from None


def _bearer(claims: dict[str, Any]) -> Bearer:
    run = RunRef(UUID(claims["tenant"]), UUID(claims["run"]))
    return Bearer(
        AttemptRef(run, UUID(claims["attempt"]), int(claims["fence"])), StepId(claims["path"], claims["index"])
    )
