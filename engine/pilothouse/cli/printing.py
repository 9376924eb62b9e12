"""Printing: results on standard output, as text for people or as data for programs."""

import json
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any


def print_text(text: str) -> None:
    """Text on standard output. What a terminal would take for a command is shown as its escape."""
    print(safe(text), flush=True)  # noqa: T201 - whoever follows reads each line as it comes


def print_data(value: Any, output: str) -> None:
    """A value as JSON or YAML on standard output."""
    if output == "json":
        text = json.dumps(value, indent=2)
    else:
        import yaml

        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True).rstrip()
    print(text, flush=True)  # noqa: T201


def print_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as kubectl prints them: three spaces apart, no lines."""
    table = [list(heads), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for row in table:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print_text("   ".join(cells).rstrip())


def safe(text: str) -> str:
    """The text with control characters, other than newline and tab, and lone surrogates made visible: what a
    step printed must not be able to command the reader's terminal."""
    return "".join(char if _plain(char) else char.encode("unicode_escape").decode() for char in text)


def _plain(char: str) -> bool:
    code = ord(char)
    return char in "\n\t" or (code >= 0x20 and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000)


def duration(length: timedelta) -> str:
    """A length of time as kubectl writes it: `850ms`, `12s`, `3m5s`, `2h10m`, `4d3h`."""
    total = length.total_seconds()
    if total < 1:
        return f"{max(total, 0) * 1000:.0f}ms"
    seconds = int(total)
    days, hours, minutes = seconds // 86400, seconds // 3600 % 24, seconds // 60 % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (seconds % 60, "s")]
    first = next(index for index, (count, _) in enumerate(parts) if count)
    return "".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count)
