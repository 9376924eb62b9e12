"""The stand-in for the base image."""

from datetime import date

from e2e.cluster import standin


def test_a_stand_in_is_made_anew_each_month() -> None:
    assert standin.recipe(date(2026, 11, 1)) == standin.recipe(date(2026, 11, 30))
    assert standin.recipe(date(2026, 11, 30)) != standin.recipe(date(2026, 12, 1))
