"""An attempt token stands for exactly one attempt, for ten minutes, and nothing else is taken for one."""

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.gateway.kubeapi import Unauthenticated
from pilothouse.gateway.tokens import LIFETIME, Bearer, issue, verify
from pilothouse.records.runs import AttemptRef, RunRef, StepId

KEY = bytes(range(32))
BEARER = Bearer(AttemptRef(RunRef(uuid4(), uuid4()), uuid4(), 7), StepId("deploy/é\n", 3))
SECOND = timedelta(seconds=1)


def issued(age: timedelta) -> str:
    """A token of that age; a negative one is of the future."""
    return issue(KEY, BEARER, datetime.now(UTC) - age)


def claims(**changes: Any) -> dict[str, Any]:
    """The claims of a good token, changed; None leaves one out."""
    good = jwt.decode(issue(KEY, BEARER), options={"verify_signature": False})
    return {name: value for name, value in (good | changes).items() if value is not None}


def signed(body: dict[str, Any], key: Any = KEY, algorithm: str = "HS256", typ: str | None = None) -> str:
    return jwt.encode(body, key, algorithm, {"typ": typ or "pilothouse-attempt+jwt"})


def unsigned(token: str) -> str:
    header = base64.urlsafe_b64encode(json.dumps({"alg": "none", "typ": "pilothouse-attempt+jwt"}).encode())
    return f"{header.rstrip(b'=').decode()}.{token.split('.')[1]}."


def with_payload(token: str, **changes: Any) -> str:
    """The token with other claims below its old signature."""
    header, _, signature = token.split(".")
    payload = base64.urlsafe_b64encode(json.dumps(claims(**changes)).encode()).rstrip(b"=").decode()
    return f"{header}.{payload}.{signature}"


def test_a_token_gives_back_its_bearer() -> None:
    assert verify(KEY, issue(KEY, BEARER)) == BEARER


def test_the_helper_makes_good_tokens() -> None:
    assert verify(KEY, signed(claims())) == BEARER


@pytest.mark.parametrize("age", [timedelta(0), LIFETIME - SECOND])
def test_a_token_is_good_for_its_lifetime(age: timedelta) -> None:
    assert verify(KEY, issued(age)) == BEARER


REFUSED = {
    "expired": lambda: issued(LIFETIME + 31 * SECOND),
    "issued in the future": lambda: issued(-60 * SECOND),
    "another key": lambda: issue(bytes(32), BEARER),
    "no algorithm": lambda: unsigned(issue(KEY, BEARER)),
    "another algorithm": lambda: signed(claims(), KEY * 2, "HS512"),
    "another type": lambda: signed(claims(), typ="JWT"),
    "another audience": lambda: signed(claims(aud="pilothouse-approvals")),
    "several audiences": lambda: signed(claims(aud=["pilothouse-store-api", "other"])),
    "no audience": lambda: signed(claims(aud=None)),
    "no end": lambda: signed(claims(exp=None)),
    "no begin": lambda: signed(claims(iat=None)),
    "no fence": lambda: signed(claims(fence=None)),
    "a fence that is none": lambda: signed(claims(fence="x")),
    "an attempt that is no id": lambda: signed(claims(attempt="..")),
    "no step": lambda: signed(claims(path=None)),
    "another attempt's id": lambda: with_payload(issue(KEY, BEARER), attempt=str(uuid4())),
    "another fence": lambda: with_payload(issue(KEY, BEARER), fence=8),
    "another tenant": lambda: with_payload(issue(KEY, BEARER), tenant=str(UUID(int=0))),
    "a longer life": lambda: with_payload(issue(KEY, BEARER), exp=claims()["exp"] + 1),
    "half of it": lambda: issue(KEY, BEARER)[:-5],
    "nothing": lambda: "",
    "dots": lambda: "..",
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_anything_else_is_refused_in_one_way(make: Any) -> None:
    with pytest.raises(Unauthenticated, match=r"^attempt token$"):
        verify(KEY, make())


@given(st.text() | st.from_regex(r"[\w-]+\.[\w-]+\.[\w-]*", fullmatch=True))
def test_any_text_is_refused_and_nothing_crashes(text: str) -> None:
    with pytest.raises(Unauthenticated):
        verify(KEY, text)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_token_with_any_byte_changed_is_refused(place: int, change: int) -> None:
    token = bytearray(issue(KEY, BEARER).encode())
    place %= len(token)
    token[place] ^= change
    try:
        assert verify(KEY, token.decode("latin-1")) == BEARER  # the last character of base64 has spare bits
        assert place == len(token) - 1
    except Unauthenticated:
        pass
