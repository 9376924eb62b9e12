"""Secrets in what tools answer: every form that is looked for, anywhere in a text."""

import base64
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from pilothouse.tools.redaction import MARK, SHORTEST, Redactor

SECRET = 'p@ss/w+rd="ü"\nline two'


def redactor(*values: str) -> Redactor:
    made = Redactor()
    for value in values:
        made.learn(value)
    return made


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        SECRET.replace("\n", "\r\n"),
        json.dumps(SECRET)[1:-1],
        json.dumps(SECRET, ensure_ascii=False)[1:-1],
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        quote(SECRET, safe="").replace("%C3%BC", "%c3%bc").replace("%0A", "%0a").replace("%2F", "%2f")
        .replace("%2B", "%2b").replace("%3D", "%3d"),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
    ],
)  # fmt: skip
def test_each_form_is_found_inside_a_text(form: str) -> None:
    assert redactor(SECRET).text(f"before{form}after {form}") == f"before{MARK}after {MARK}"


@given(st.binary(max_size=7), st.text(min_size=SHORTEST, max_size=40), st.binary(max_size=7), st.booleans())
def test_no_digit_that_is_the_secrets_alone_is_left_of_base64(
    before: bytes, secret: str, after: bytes, url_safe: bool
) -> None:
    data = secret.strip().encode()
    if len(secret.strip()) < SHORTEST:
        return
    encode = base64.urlsafe_b64encode if url_safe else base64.b64encode
    told = redactor(secret).text(encode(before + data + after).decode())
    assert MARK in told
    left = len(told) - len(MARK)
    assert left <= len(encode(before + after)) + 4


def test_the_longest_form_is_taken_and_neighbours_are_left() -> None:
    both = redactor("secret-one", "secret-one-and-more")
    assert both.text("a secret-one-and-more b secret-one c") == f"a {MARK} b {MARK} c"


def test_blank_space_around_a_value_and_short_values_are_not_looked_for() -> None:
    assert redactor("  secret\n").text("a secret b") == f"a {MARK} b"
    assert redactor("a", "", "  ", "12345").text("a 12345") == "a 12345"


def test_nothing_is_taken_out_before_anything_is_known() -> None:
    assert Redactor().text("all of it") == "all of it"


def test_every_text_in_a_json_value_is_redacted() -> None:
    value: JsonValue = {"a": ["x secret", {"secret": 1}], "b": None, "c": 1.5, "d": True}
    assert redactor("secret").json(value) == {"a": [f"x {MARK}", {MARK: 1}], "b": None, "c": 1.5, "d": True}
