"""The domain gate: what it lets pass, and the ways that were tried around such gates."""

import ipaddress
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.api.governance import AllowDeny
from pilothouse.governance.domains import DomainGate
from pilothouse.governance.urls import DomainRefused

OPEN = DomainGate.of(None)


def gate(allow: Sequence[str] | None = None, deny: Sequence[str] = ()) -> DomainGate:
    return DomainGate.of(AllowDeny(allow=None if allow is None else tuple(allow), deny=tuple(deny)))


def passes(one: DomainGate, url: str) -> bool:
    try:
        one.check(url)
    except DomainRefused:
        return False
    return True


async def resolved(one: DomainGate, *answers: str, url: str = "http://host.example/") -> list[str]:
    async def resolve(host: str, port: int) -> Sequence[str]:
        return answers

    return [str(address) for address in await one.addresses(one.check(url), resolve)]


@pytest.mark.feature("W13")
@pytest.mark.parametrize(
    ("allow", "deny", "url", "allowed"),
    [
        (None, (), "https://example.com/a", True),
        ((), (), "https://example.com/a", False),
        (("example.com",), (), "https://example.com:8443/a", True),
        (("example.com",), (), "https://www.example.com/", True),
        (("example.com",), (), "https://EXAMPLE.COM./", True),
        (("example.com",), (), "https://badexample.com/", False),
        (("example.com",), (), "https://example.com.evil.example/", False),
        (("example.com",), (), "https://evil.example/?example.com", False),
        (("example.com",), (), "https://93.184.216.34/", False),
        (("Example.com.",), (), "https://example.com/", True),
        (("bücher.example",), (), "https://xn--bcher-kva.example/", True),
        (("*.example.com",), (), "https://www.example.com/", True),
        (("*.example.com",), (), "https://example.com/", False),
        (("*",), (), "https://example.com/", True),
        (("*",), (), "https://93.184.216.34/", True),
        (("93.184.216.0/24",), (), "https://93.184.216.34/", True),
        (None, ("example.com",), "https://www.example.com/", False),
        (None, ("example.com",), "https://www.example.com./", False),
        (None, ("example.com",), "https://notexample.com/", True),
        (("example.com",), ("private.example.com",), "https://private.example.com/", False),
        (("example.com",), ("private.example.com",), "https://example.com/", True),
        (None, ("*",), "https://example.com/", False),
        (None, ("*",), "https://93.184.216.34/", False),
        (None, ("93.184.216.0/24",), "https://93.184.216.34/", False),
        (("*",), ("93.184.216.34",), "https://[::ffff:93.184.216.34]/", False),
    ],
)
def test_a_domain_stands_for_its_sub_domains_and_denying_goes_first(
    allow: Sequence[str] | None, deny: Sequence[str], url: str, allowed: bool
) -> None:
    assert passes(gate(allow, deny), url) is allowed


NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.1.1",
    "100.64.0.1", "100.100.100.200", "0.0.0.0", "0.1.2.3", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1",  # noqa: S104
    "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001:db8::1", "::127.0.0.1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1",
    "2002:101:101::",
]  # fmt: skip


@pytest.mark.feature("W11")
@pytest.mark.parametrize("address", NOT_PUBLIC)
async def test_an_address_that_is_not_public_is_refused_by_itself_and_behind_a_name(address: str) -> None:
    url = f"http://[{address}]/" if ":" in address else f"http://{address}/"
    for one in (OPEN, gate(["*"]), gate(["host.example"])):
        assert not passes(one, url)
        with pytest.raises(DomainRefused, match=r"not public|denied"):
            await resolved(one, address, url="http://host.example/")


@pytest.mark.parametrize("address", ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101"])
async def test_a_public_address_passes(address: str) -> None:
    assert await resolved(OPEN, address) == [address]


@pytest.mark.feature("W11")
async def test_one_bad_address_among_good_ones_refuses_the_host() -> None:
    with pytest.raises(DomainRefused, match=r"10\.0\.0\.1, which is not public"):
        await resolved(OPEN, "1.1.1.1", "10.0.0.1")
    with pytest.raises(DomainRefused, match="has no address"):
        await resolved(OPEN)


async def test_a_range_that_is_allowed_opens_private_addresses_but_not_those_that_give_credentials() -> None:
    wide = gate(["host.example", "10.0.0.0/8", "169.254.0.0/16", "fd00::/8"])
    assert await resolved(wide, "10.1.2.3", "169.254.1.1") == ["10.1.2.3", "169.254.1.1"]
    assert passes(wide, "http://10.1.2.3/")
    for metadata in ("169.254.169.254", "fd00:ec2::254"):
        with pytest.raises(DomainRefused, match="not public"):
            await resolved(wide, metadata)
        assert await resolved(gate(["host.example", metadata]), metadata) == [metadata]


async def test_a_denied_address_is_refused_behind_an_allowed_name() -> None:
    with pytest.raises(DomainRefused, match=r"1\.1\.1\.1 of `host.example` is denied"):
        await resolved(gate(["host.example"], ["1.1.1.0/24"]), "1.1.1.1")


def test_the_refusal_of_a_private_address_says_what_would_allow_it() -> None:
    with pytest.raises(DomainRefused, match=r'an entry like "127\.0\.0\.1" in governance\.domains\.allow'):
        OPEN.check("http://127.0.0.1/")


@pytest.mark.parametrize(
    "pattern", ["https://example.com", "example.com/a", "example.com:443", "a b", "*.", "*example.com", "1.2.3", "a..b"]
)
def test_a_pattern_that_cannot_be_read_is_an_error_and_not_a_hole(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"must be a domain like example\.com"):
        gate(deny=[pattern])


@given(st.ip_addresses(v=4))
def test_ipv6_forms_of_an_ipv4_address_are_judged_as_it_is(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    forms = [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
    ]
    if not passes(OPEN, f"http://{address}/"):
        assert not any(passes(OPEN, f"http://[{form}]/") for form in forms)


@given(st.sampled_from(["com", "example.com", "a.example.com", "xexample.com", "example.com.x"]), st.booleans())
def test_allowing_and_denying_one_domain_are_opposites(host: str, final_dot: bool) -> None:
    url = f"http://{host}{'.' if final_dot else ''}/"
    assert passes(gate(["example.com"]), url) is not passes(gate(deny=["example.com"]), url)
