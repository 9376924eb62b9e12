"""Plain scalars as YAML 1.2 reads them: what is no number, true, false or null is a text.

What `kubectl` reads otherwise, since it speaks YAML 1.1, is refused: the same file would mean two things. So `yes`,
`on`, `n`, `0777` and `1_000` want quotes; `1:30` and `2027-01-31` are texts to both.
"""

import math
import re

MAX_INTEGER = 2**63

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(0|[1-9][0-9]*|(?=\.[0-9]))(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_AMBIGUOUS = re.compile(
    r"y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF|[-+]?0[0-9_]+|[-+]?[0-9][0-9_]*_[0-9_.]*|0b[01_]+"
)
_LONGEST = 400


class ScalarRefused(ValueError):  # noqa: N818 - the outcome, as the reader reports it
    """A number that JSON, or a 64-bit integer, cannot hold; or a scalar that YAML 1.1 and 1.2 read differently."""


def resolve(text: str) -> bool | int | float | str | None:
    """The value of a scalar that stands without quotes and tag. Raises ScalarRefused."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text) or _BASED.fullmatch(text):
        return integer(text)
    if _FLOAT.fullmatch(text):
        return number(text)
    if _NO_NUMBER.fullmatch(text):
        raise ScalarRefused(f"holds the number {text}, which JSON does not have")
    if _AMBIGUOUS.fullmatch(text):
        raise ScalarRefused(f"holds a plain `{text[:40]}`, which kubectl reads as {_other(text)}: quote it")
    return text


def _other(text: str) -> str:
    if text[0].isalpha():
        return "true" if text.lower() in {"y", "yes", "on"} else "false"
    return "a number"


def integer(text: str) -> int:
    """The integer. Raises ScalarRefused beyond 64 bits."""
    value = int(text, 0) if len(text) <= _LONGEST else MAX_INTEGER  # int() refuses what is very long by itself
    if not -MAX_INTEGER <= value < MAX_INTEGER:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise ScalarRefused(f"holds {shown}, which does not fit into 64 bits: quote it")
    return value


def number(text: str) -> float:
    """The number. Raises ScalarRefused where it is too large, or NaN or Infinity."""
    value = float(text)
    if not math.isfinite(value):
        raise ScalarRefused(f"holds the number {text[:40]}, which JSON does not have")
    return value
