"""Did you mean: the name that was probably meant by one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

_SHOWN = 20


def closest(name: str, known: Sequence[str]) -> str | None:
    """The name that was probably meant; case, dashes and underscores do not matter."""
    plain = {_plain(candidate): candidate for candidate in known}
    found = difflib.get_close_matches(_plain(name), plain, n=1, cutoff=0.7)
    return plain[found[0]] if found else None


def _plain(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of a message about a name that is not known: the one that was probably meant, else what there is."""
    names = list(known)
    close = closest(name, names)
    return f"; did you mean `{close}`?" if close else f"; there are: {', '.join(names[:_SHOWN]) or 'none'}"
