"""Where a URL leads, read once and strictly: whoever connects uses what was judged, never the text again.

Parsers disagree about odd URLs, and that is how a filter is talked past. So what two parsers could read differently is
refused rather than interpreted: user names, backslashes, control characters, and IPv4 addresses in any form but four
decimal numbers (the C library reads `2130706433`, `0x7f.1` and `0177.0.0.1` as 127.0.0.1).
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL = 8_192
"""Characters of a URL, at most."""

_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[\x00-\x20\x7f-\xa0\\\u2028\u2029]")
_NUMERIC = re.compile(r"(0[xX][0-9a-fA-F]*|[0-9]+)\Z")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\Z")


class DomainRefused(Exception):  # noqa: N818 - the outcome, as the caller reports it
    """A destination must not be spoken to; the text says why, and what would be right."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a URL leads. `host` is a lower-case ASCII name without a final dot, or what `address` is, too."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as they are sent."""
    address: Address | None = None

    @property
    def authority(self) -> str:
        """Host and port as the `Host` header has them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def destination(url: str) -> Destination:
    """Reads the URL. Raises DomainRefused for one that is malformed, ambiguous or not http(s)."""
    if len(url) > MAX_URL:
        raise DomainRefused(f"a URL may have {MAX_URL:,} characters, this one has {len(url):,}")
    if _UNSAFE.search(url):
        raise DomainRefused("a URL may not hold spaces, control characters or backslashes; percent-encode them")
    parts, port = _split(url)
    if parts.scheme not in _PORTS:
        raise DomainRefused(
            f"only http and https URLs are fetched, not {parts.scheme[:40] or 'one without a scheme'!r}"
        )
    if parts.username is not None or parts.password is not None:
        raise DomainRefused("a URL may not hold a user name or a password")
    host, address = _host(parts.hostname or "", bracketed="[" in parts.netloc)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(parts.scheme, host, port or _PORTS[parts.scheme], _ascii(target), address)


def ascii_name(name: str) -> str:
    """The name as DNS has it: lower case, IDNA, no final dot. Raises DomainRefused if it is none."""
    encoded = name if name.isascii() else _idna(name)
    labels = encoded.lower().removesuffix(".").split(".")
    if not all(len(label) <= 63 and _LABEL.match(label) for label in labels) or len(encoded) > 254:
        raise DomainRefused(f"{name[:100]!r} is not a domain name")
    return ".".join(labels)


def _idna(name: str) -> str:
    import idna  # Here, as its tables are large and hardly any name needs them.

    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError as error:
        raise DomainRefused(f"{name[:100]!r} is not a domain name: {error}") from None


def parse_address(text: str) -> Address | None:
    """The address, if the text is one: IPv4 as four decimal numbers, or IPv6 without a zone."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise DomainRefused("an IPv6 address may not name a zone")
    return address


def _split(url: str) -> tuple[SplitResult, int | None]:
    try:
        parts = urlsplit(url)
        if parts.port == 0 or parts.netloc.endswith(":"):
            raise ValueError("the port is missing or 0")
        return parts, parts.port
    except ValueError as error:
        raise DomainRefused(f"the URL is malformed: {error}") from None


def _host(text: str, *, bracketed: bool) -> tuple[str, Address | None]:
    if not text:
        raise DomainRefused("the URL names no host")
    if bracketed:
        if (address := parse_address(text)) is None or address.version != 6:
            raise DomainRefused("what stands in brackets must be an IPv6 address")
        return str(address), address
    if "%" in text or ":" in text:
        raise DomainRefused(f"{text[:100]!r} is not a domain name")
    name = ascii_name(text)
    if not _NUMERIC.match(name.rpartition(".")[2]):
        return name, None
    if (address := parse_address(name)) is None:
        raise DomainRefused(f"{text[:100]!r}: an IPv4 address must be written as four decimal numbers")
    return str(address), address


def _ascii(target: str) -> str:
    return "".join(char if char.isascii() else "".join(f"%{byte:02X}" for byte in char.encode()) for char in target)
