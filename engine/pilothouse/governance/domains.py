"""The domain gate: which network destinations the tools of an agent may speak to."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias

from pilothouse.api.governance import AllowDeny
from pilothouse.governance.urls import Address, Destination, DomainRefused, ascii_name, destination

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]

LOOKUP_LIMIT = 10.0
"""Seconds that a DNS lookup may take."""

METADATA = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "169.254.170.2", "100.100.100.200", "fd00:ec2::254"))
)
"""Where clouds hand credentials to whoever asks from inside."""

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Special by IANA's registries, and yet global to the `ipaddress` of some of the Pythons supported.
_SPECIAL = tuple(
    map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2002::/16", "5f00::/16"))
)


@dataclass(frozen=True, slots=True)
class Patterns:
    """Patterns of AllowDeny, read. Raises ValueError for one that is none of: a domain (it stands for its sub-domains,
    too), `*.` and a domain (only for those), `*`, an address, an address range."""

    everything: bool = False
    names: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, patterns: Sequence[str]) -> Self:
        networks = [network for pattern in patterns if (network := _network(pattern)) is not None]
        names = [_name(pattern) for pattern in patterns if pattern != "*" and _network(pattern) is None]
        return cls("*" in patterns, frozenset(names), tuple(networks))

    def name(self, host: str) -> bool:
        """Whether a pattern matches the name."""
        labels = host.split(".")
        above = {".".join(labels[start:]) for start in range(1, len(labels))}
        return (
            self.everything or host in self.names or bool(above & self.names or {f"*.{a}" for a in above} & self.names)
        )

    def address(self, address: Address) -> bool:
        """Whether a range matches the address. One of METADATA is matched by itself alone, not by a range around it."""
        return any(
            address in network and (address not in METADATA or network.num_addresses == 1) for network in self.networks
        )


@dataclass(frozen=True, slots=True)
class DomainGate:
    """Says which destinations are allowed.

    Checked are the host's name (denied patterns first, then the allowed ones, if there is a list of them), and each
    address that it has at the moment of connecting: one that is not public on the Internet (private, loopback,
    link-local, metadata, multicast, reserved, also inside an IPv6 address) is refused unless an allowed pattern is that
    address or a range around it. One bad address refuses the host. Whoever connects must connect to an address that
    `addresses` has returned, so that a second lookup cannot answer otherwise.
    """

    allow: Patterns | None = None
    deny: Patterns = field(default_factory=Patterns)

    @classmethod
    def of(cls, rules: AllowDeny | None) -> Self:
        """The gate for `governance.domains`. Raises ValueError, naming the pattern that cannot be read."""
        if rules is None:
            return cls()
        return cls(None if rules.allow is None else Patterns.read(rules.allow), Patterns.read(rules.deny))

    def check(self, url: str) -> Destination:
        """Where the URL leads, as far as that needs no lookup. Raises DomainRefused."""
        found = destination(url)
        if found.address is not None:
            self.check_address(found.host, found.address)
            if self.allow is None or self.allow.everything or self.allow.address(found.address):
                return found
        elif self.deny.name(found.host):
            raise DomainRefused(f"the domain `{found.host}` is denied")
        elif self.allow is None or self.allow.name(found.host):
            return found
        raise DomainRefused(f"`{found.host}` is not among the allowed domains")

    def check_address(self, host: str, address: Address) -> None:
        """Raises DomainRefused unless the host may have this address."""
        inner = _embedded(address)
        if self.deny.everything or self.deny.address(address) or self.deny.address(inner):
            raise DomainRefused(f"the address {address} of `{host}` is denied")
        granted = self.allow is not None and (self.allow.address(address) or self.allow.address(inner))
        if not granted and not (_public(address) and _public(inner)):
            raise DomainRefused(
                f"`{host}` has the address {address}, which is not public; if that is meant, the Agent must allow it "
                f'by an entry like "{address}" in governance.domains.allow'
            )

    async def addresses(self, found: Destination, resolve: Resolve | None = None) -> tuple[Address, ...]:
        """The addresses to connect to, in the resolver's order. Raises DomainRefused; OSError for a failed lookup."""
        if found.address is not None:
            self.check_address(found.host, found.address)
            return (found.address,)
        async with asyncio.timeout(LOOKUP_LIMIT):
            texts = await (resolve or _lookup)(found.host, found.port)
        resolved = tuple(dict.fromkeys(ipaddress.ip_address(text) for text in texts))
        if not resolved:
            raise DomainRefused(f"`{found.host}` has no address")
        for address in resolved:
            self.check_address(found.host, address)
        return resolved


def _network(pattern: str) -> Network | None:
    try:
        return ipaddress.ip_network(pattern.strip("[]"), strict=False)
    except ValueError:
        return None


def _name(pattern: str) -> str:
    wildcard = "*." if pattern.startswith("*.") else ""
    try:
        name = ascii_name(pattern.removeprefix(wildcard))
    except DomainRefused:
        name = ""
    if not name or name.rpartition(".")[2].isdecimal():
        raise ValueError(
            f"`{pattern}` must be a domain like example.com (without scheme, port or path), *.example.com, *, an "
            "address or an address range like 10.0.0.0/8"
        )
    return wildcard + name


def _public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address) and (address in _NAT64 or address.is_site_local):
        return address in _NAT64
    special = address.is_multicast or address.is_reserved or any(address in network for network in _SPECIAL)
    return address.is_global and not special


def _embedded(address: Address) -> Address:
    """The IPv4 address that an IPv6 address leads to; else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


async def _lookup(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]
