"""SQL in files: each `-- name: …` line of a file begins one query."""

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_NAME = re.compile(rb"^-- name: (\w+)$", re.MULTILINE)


@cache
def queries(file: str) -> Mapping[str, bytes]:
    """The queries of `<file>.sql` beside this module, by name."""
    text = files(__package__).joinpath(f"{file}.sql").read_bytes()
    parts = _NAME.split(text)[1:]
    return {name.decode(): body.strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
