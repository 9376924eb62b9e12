"""Takes the values of secrets out of what tools answer, in the forms in which they usually turn up."""

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

from pydantic import JsonValue

SHORTEST = 6
"""Characters of the shortest value that is looked for: shorter ones would blot out innocent text."""

MARK = "[redacted]"

_NOTHING = re.compile(r"(?!)")


class Redactor:
    """Replaces each value that it has learnt by MARK: as it is, hexadecimal, URL-encoded, JSON-escaped, and in Base64,
    also inside a longer Base64 text. It finds what was printed by accident; who means to smuggle a secret out can
    always write it differently."""

    def __init__(self) -> None:
        self._forms: set[str] = set()
        self._pattern = _NOTHING

    def learn(self, value: str) -> None:
        """Looks for this value, too, from now on. Blank space at its ends, as files have it, does not count."""
        value = value.strip()
        if len(value) < SHORTEST or value in self._forms:
            return
        self._forms.update(_forms(value))
        self._pattern = re.compile("|".join(re.escape(form) for form in sorted(self._forms, key=len, reverse=True)))

    def text(self, text: str) -> str:
        return self._pattern.sub(MARK, text)

    def json(self, value: JsonValue) -> JsonValue:
        """The value with every text in it redacted, keys included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self.json(item) for item in value]
        if isinstance(value, dict):
            return {self.text(key): self.json(item) for key, item in value.items()}
        return value


def _forms(value: str) -> Iterator[str]:
    data = value.encode(errors="surrogatepass")
    yield value
    yield from (data.hex(), data.hex().upper())
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        yield re.sub("%[0-9A-F]{2}", lambda escape: escape[0].lower(), quoted)
    for ascii_only in (True, False):
        yield json.dumps(value, ensure_ascii=ascii_only)[1:-1]
    yield value.replace("\n", "\r\n")
    yield from _base64(data)


def _base64(data: bytes) -> Iterator[str]:
    """How the data looks in Base64 at each of the three places where it can begin; the digits at its ends that its
    neighbours have a part in are left out."""
    for shift in range(3):
        digits = base64.b64encode(b"\0" * shift + data)
        whole = (shift + len(data)) * 8 // 6
        inner = digits[-(-shift * 8 // 6) : whole].decode()
        yield inner
        yield inner.replace("+", "-").replace("/", "_")
