"""From where an object stands to its conditions, by kstatus."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse_operator.verdict import MESSAGE_LIMIT, Said, Standing, Verdict, conditions, cut, ready, timestamp

NOW = datetime(2027, 1, 31, 12, 0, 0, 999_999, tzinfo=UTC)


@pytest.mark.parametrize(
    ("standing", "said"),
    [
        (Standing.READY, [("Ready", "True")]),
        (Standing.WORKING, [("Ready", "Unknown"), ("Reconciling", "True")]),
        (Standing.WAITING, [("Ready", "False"), ("Reconciling", "True")]),
        (Standing.UNKNOWN, [("Ready", "Unknown")]),
        (Standing.STALLED, [("Ready", "False"), ("Stalled", "True")]),
    ],
)
def test_each_standing_has_its_conditions(standing: Standing, said: list[tuple[str, str]]) -> None:
    found = ready(Verdict(standing, "Reason", "Words."))
    assert [(each.type, each.status) for each in found] == said
    assert {(each.reason, each.message) for each in found} == {("Reason", "Words.")}


def test_a_condition_is_as_kubernetes_has_it() -> None:
    (found,) = conditions([Said("Ready", "True", "Succeeded", "run 1 succeeded")], [], 7, NOW)
    assert found == {
        "type": "Ready",
        "status": "True",
        "reason": "Succeeded",
        "message": "run 1 succeeded",
        "lastTransitionTime": "2027-01-31T12:00:00Z",
        "observedGeneration": 7,
    }


def test_the_time_changes_with_the_status_and_not_with_the_words() -> None:
    before = [{"type": "Ready", "status": "True", "reason": "A", "lastTransitionTime": "2020-01-01T00:00:00Z"}]
    same, other = Said("Ready", "True", "B", "other words"), Said("Ready", "False", "A")
    assert conditions([same], before, 1, NOW)[0]["lastTransitionTime"] == "2020-01-01T00:00:00Z"
    assert conditions([other], before, 1, NOW)[0]["lastTransitionTime"] == timestamp(NOW)


def test_what_does_not_hold_any_more_stands_no_more() -> None:
    before = [{"type": "Stalled", "status": "True", "reason": "A"}]
    assert [each["type"] for each in conditions(ready(Verdict(Standing.READY, "B")), before, 1, NOW)] == ["Ready"]


@given(st.text(st.characters(), max_size=3_000), st.integers(0, 1_100))
def test_a_text_is_cut_to_bytes_and_no_further_than_it_must(text: str, limit: int) -> None:
    found = cut(text, limit)
    assert text.startswith(found)
    assert _size(found) <= limit
    if found != text:
        assert _size(text[: len(found) + 6]) > limit - 6


def test_a_message_of_the_longest_letters_fits() -> None:
    assert _size(conditions([Said("Ready", "True", "A", "\x01" * 9_999)], [], 1, NOW)[0]["message"]) <= MESSAGE_LIMIT
    assert conditions([Said("Ready", "True", "A", "x" * 9_999)], [], 1, NOW)[0]["message"] == "x" * MESSAGE_LIMIT


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2
