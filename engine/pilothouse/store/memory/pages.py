"""Pages of rows that are in memory."""

from collections.abc import Iterable, Sequence

from pilothouse.store.pages import Page
from pilothouse.store.rows import Row


def page(rows: Iterable[Row], large: Sequence[str], size: int) -> Page:
    """The rows that fit, measured by their columns `large`."""
    fitting: list[Row] = []
    for row in rows:
        takes = sum(len(row[column] or "") for column in large)
        size -= takes
        if size < 0:
            return Page(fitting, takes)
        fitting.append(row)
    return Page(fitting, 0)


def queue_page(items: Iterable[Row], after: int, size: int) -> Page:
    return page([row for row in items if row["seq"] > after], ("queue", "message"), size)
