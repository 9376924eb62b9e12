"""`web_fetch` against a server: what it shows, what it refuses, and the ways around the gate."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from pilothouse.api.governance import AllowDeny
from pilothouse.governance.domains import DomainGate
from pilothouse.tools.tool import ToolResult
from pilothouse.tools.web import fetch
from pilothouse.tools.web.fetch import WebFetch
from tests.tools.calls import text, use
from tests.tools.web.site import Site, running

CERTIFICATES = Path(__file__).parents[2] / "gateway/certificates"
GATE = DomainGate.of(AllowDeny(allow=("site.example", "other.example", "localhost", "127.0.0.1")))


class Names:
    """A resolver that answers from a table, one answer after the other, and the last for ever."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.asked: list[str] = []
        self._answers = {name.replace("_", "."): list(answer) for name, answer in answers.items()}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self._answers[host]
        return [answers.pop(0) if len(answers) > 1 else answers[0]]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with running() as site:
        yield site


async def get(url: str, names: Names | None = None) -> ToolResult:
    here = ["127.0.0.1"]
    return await use(WebFetch(GATE, names or Names(site_example=here, other_example=here, localhost=here)), url=url)


async def test_a_text_is_shown_as_it_is(site: Site) -> None:
    site.page("/a?b=c", '{"a": "ü"}', "application/json")
    result = await get(f"http://site.example:{site.port}/a?b=c#part")
    assert (text(result), result.is_error) == ('{"a": "ü"}', False)
    assert isinstance(result.details, dict)
    assert (result.details["status"], result.details["size"]) == (200, 11)
    assert f"\r\nHost: site.example:{site.port}\r\n" in site.requests[0]


async def test_a_page_is_shown_as_text(site: Site) -> None:
    page = "<title>T</title><body><h2>Head</h2><p>One <a href='/x'>two</a><script>no()</script></p><ul><li>three</ul>"
    site.page("/", page.encode("latin-1"), "text/html; charset=latin-1")
    assert text(await get(f"http://site.example:{site.port}/")) == "T\n\n## Head\n\nOne [two](/x)\n\n- three"


async def test_an_answer_that_is_an_error_is_an_error_result_with_its_text(site: Site) -> None:
    result = await get(f"http://site.example:{site.port}/missing")
    assert (text(result), result.is_error) == ("[HTTP status 404]\ngone", True)


@pytest.mark.parametrize(("body", "media_type"), [(b"\x89PNG\0", "image/png"), (b"a\0b", "text/plain")])
async def test_what_is_no_text_is_named_and_not_shown(site: Site, body: bytes, media_type: str) -> None:
    site.page("/", body, media_type)
    result = await get(f"http://site.example:{site.port}/")
    assert result.is_error
    assert f"not text but {media_type}" in text(result)


async def test_bytes_that_are_not_in_the_charset_are_replaced(site: Site) -> None:
    site.page("/", b"a\xffb", "text/plain; charset=no-such")
    assert text(await get(f"http://site.example:{site.port}/")) == "a\ufffdb"


async def test_a_redirect_is_followed(site: Site) -> None:
    site.page("/there", "found")
    site.redirect("/here", "/there")
    site.redirect("/start", f"http://other.example:{site.port}/here")
    assert text(await get(f"http://site.example:{site.port}/start")) == "found"
    assert [request.split()[1] for request in site.requests] == ["/start", "/here", "/there"]


@pytest.mark.feature("W11")
@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/",
        "http://evil.example/",
        "http://2130706433/",
        "file:///etc/passwd",
        "//user@site.example/",
    ],
)
async def test_a_redirect_passes_the_gate_anew(site: Site, target: str) -> None:
    site.redirect("/", target)
    result = await get(f"http://site.example:{site.port}/")
    assert result.details == {"error": "DomainRefused"}
    assert len(site.requests) == 1


async def test_redirects_come_to_an_end(site: Site) -> None:
    site.redirect("/", "/")
    assert "redirects more than 5 times" in text(await get(f"http://site.example:{site.port}/"))


@pytest.mark.feature("W11")
async def test_a_name_that_leads_inside_is_refused() -> None:
    async with running() as site:
        names = Names(site_example=["127.0.0.2"])
        result = await get(f"http://site.example:{site.port}/", names)
        assert "127.0.0.2, which is not public" in text(result)
        assert site.requests == []


@pytest.mark.feature("W11")
async def test_a_name_is_looked_up_once_and_the_judged_address_is_connected_to(site: Site) -> None:
    """A second lookup could answer otherwise: that is DNS rebinding."""
    site.page("/", "pinned")
    names = Names(site_example=["127.0.0.1", "127.0.0.2"])
    assert text(await get(f"http://site.example:{site.port}/", names)) == "pinned"
    assert names.asked == ["site.example"]
    assert "127.0.0.2, which is not public" in text(await get(f"http://site.example:{site.port}/", names))


async def test_the_environments_proxy_is_not_used(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.page("/", "direct")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert text(await get(f"http://site.example:{site.port}/")) == "direct"


async def test_a_host_that_does_not_answer_is_an_error_result(site: Site) -> None:
    result = await get("http://site.example:1/")
    assert result.details == {"error": "FetchFailed"}


@pytest.mark.parametrize("media_type", [b"text/plain", b"text/event-stream"])
async def test_an_answer_without_end_is_cut_off(site: Site, monkeypatch: pytest.MonkeyPatch, media_type: bytes) -> None:
    monkeypatch.setattr(fetch, "MAX_BYTES", 100_000)
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: " + media_type + b"\r\n\r\n")
        while not writer.is_closing():
            writer.write(b"x" * 10_000)
            sent += 10_000
            await writer.drain()

    site.pages["/"] = endless
    result = await get(f"http://site.example:{site.port}/")
    assert "larger than 100,000 bytes" in text(result)
    assert sent < 100_000_000


async def test_a_silent_server_is_not_waited_for(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIME_LIMIT", 0.2)
    silent = asyncio.Event()

    async def nothing(writer: asyncio.StreamWriter) -> None:
        await silent.wait()

    site.pages["/"] = nothing
    result = await get(f"http://site.example:{site.port}/")
    silent.set()
    assert result.details in ({"error": "TimedOut"}, {"error": "FetchFailed"})


async def test_tls_asks_for_the_certificate_of_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "ca.pem"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    async with running(context) as site:
        site.page("/", "secret")
        assert text(await get(f"https://localhost:{site.port}/")) == "secret"
        result = await get(f"https://site.example:{site.port}/")
        assert result.details == {"error": "FetchFailed"}
        assert "mismatch" in text(result).lower()
