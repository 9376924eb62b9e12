"""Values of ConfigMaps and Secrets in a local run."""

import pytest

from pilothouse.cli.sources import LocalSources
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.workflows.work import ValueSource

SOURCES = LocalSources({"texts": {"prompt": "Be brief."}}, {"keys": {"token": b"abc", "raw": b"\xff"}})


def test_values_come_from_the_kind_that_is_named() -> None:
    assert SOURCES.value(ValueSource("ConfigMap", "texts", "prompt")) == "Be brief."
    assert SOURCES.value(ValueSource("Secret", "keys", "token")) == "abc"


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (ValueSource("ConfigMap", "keys", "token"), "there is no ConfigMap `keys`; add it to the files of the run"),
        (ValueSource("Secret", "texts", "prompt"), "there is no Secret `texts`; add it to the files of the run"),
        (ValueSource("Secret", "keys", "tokn"), "Secret `keys` has no key `tokn`"),
        (ValueSource("Secret", "keys", "raw"), "key `raw` of Secret `keys` is not text"),
    ],
)
def test_what_is_missing_is_named(source: ValueSource, message: str) -> None:
    with pytest.raises(Failed) as raised:
        SOURCES.value(source)
    assert raised.value.failure.code is FailureCode.ENV
    assert raised.value.failure.message == message


def test_the_repr_shows_no_secret() -> None:
    assert "abc" not in repr(SOURCES)
