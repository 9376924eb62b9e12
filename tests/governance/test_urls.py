"""How a URL is read before anyone connects."""

import ipaddress
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.governance.urls import DomainRefused, destination


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("http://example.com", "http://example.com/"),
        ("https://EXAMPLE.com./A?b=C#d", "https://example.com/A?b=C"),
        ("https://example.com:443/", "https://example.com/"),
        ("http://example.com:8080/x", "http://example.com:8080/x"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("http://ｅｘａｍｐｌｅ。com/", "http://example.com/"),
        ("http://1.2.3.4:80/", "http://1.2.3.4/"),
        ("http://①.2.3.4/", "http://1.2.3.4/"),
        ("http://[2001:DB8:0::1]:8080/", "http://[2001:db8::1]:8080/"),
    ],
)
def test_a_url_is_read_in_one_way(url: str, read: str) -> None:
    assert str(destination(url)) == read


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.com/", "only http and https"),
        ("file:///etc/passwd", "only http and https"),
        ("//example.com/", "only http and https"),
        ("example.com", "only http and https"),
        ("http:///path", "names no host"),
        ("http://user@example.com/", "user name"),
        ("http://example.com@127.0.0.1/", "user name"),
        ("http://:secret@example.com/", "user name"),
        ("http://example.com\\@127.0.0.1/", "backslashes"),
        ("http://exam\tple.com/", "control characters"),
        ("http://example.com/a b", "spaces"),
        ("http://example.com\r\nHost: other/", "control characters"),
        ("http://example.com:0/", "malformed"),
        ("http://example.com:/", "malformed"),
        ("http://example.com:99999/", "malformed"),
        ("http://example.com:x/", "malformed"),
        ("http://[::1/", "malformed"),
        ("http://[v1.x]/", "IPv6|malformed"),
        ("http://[127.0.0.1]/", "IPv6|malformed"),
        ("http://[fe80::1%25eth0]/", "zone|malformed"),
        ("http://2130706433/", "four decimal numbers"),
        ("http://0x7f000001/", "four decimal numbers"),
        ("http://017700000001/", "four decimal numbers"),
        ("http://0x7f.0.0.1/", "four decimal numbers"),
        ("http://0177.0.0.1/", "four decimal numbers"),
        ("http://127.1/", "four decimal numbers"),
        ("http://127.0.0.1.5/", "four decimal numbers"),
        ("http://example.0x1/", "four decimal numbers"),
        ("http://a..b/", "not a domain name"),
        ("http://-a.example/", "not a domain name"),
        ("http://%31%32%37.0.0.1/", "not a domain name"),
        ("http://exa<mple.com/", "not a domain name"),
        (f"http://{'a' * 64}.com/", "not a domain name"),
        (f"http://example.com/{'a' * 9_000}", "8,192 characters"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(url: str, why: str) -> None:
    with pytest.raises(DomainRefused, match=why):
        destination(url)


@given(st.text(max_size=60))
def test_no_text_does_anything_else_than_be_read_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"http://{text}/", f"http://a.example/{text}"):
        try:
            found = destination(url)
        except DomainRefused:
            continue
        assert str(found).isascii()
        assert destination(str(found)) == found


@given(st.ip_addresses(), st.integers(1, 65_535))
def test_an_address_is_read_as_itself(address: ipaddress.IPv4Address, port: int) -> None:
    host = f"[{address}]" if ":" in str(address) else str(address)
    assert (found := destination(f"http://{host}:{port}/")).address == address
    assert found.port == port


@given(st.ip_addresses(v=4))
def test_no_other_spelling_of_an_ipv4_address_is_read(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    octets = [f"{octet:o}" for octet in address.packed]
    spellings = [
        str(number), hex(number), f"0{number:o}", "0" + ".0".join(octets), ".".join(map(hex, address.packed)),
        f"{address.packed[0]}.{number & 0xFFFFFF}",
    ]  # fmt: skip
    for spelling in spellings:
        with pytest.raises(DomainRefused):
            destination(f"http://{spelling}/")


@given(st.lists(st.text(string.ascii_letters + string.digits, min_size=1, max_size=10), min_size=1, max_size=4))
def test_a_name_is_read_alike_in_any_case_and_with_a_final_dot(labels: list[str]) -> None:
    name = ".".join([*labels, "example"])
    found = {destination(f"http://{spelling}/") for spelling in (name, name.upper(), f"{name}.")}
    assert {one.host for one in found} == {name.lower()}
