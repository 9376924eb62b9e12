"""Where a model is asked, through what and with which key: the same in each of the formats."""

import asyncio
import ssl
from pathlib import Path

import pytest

from pilothouse.models import http
from pilothouse.models.factory import create
from tests.models.dialects import CHAT_DIALECT, MESSAGES_DIALECT, Dialect
from tests.models.proxy import forward_proxy
from tests.models.wire import RawServer, Reply, answer, collect, done, failed, raw_server

CERTIFICATES = Path(__file__).parents[1] / "gateway" / "certificates"


@pytest.fixture
def no_proxy_settings(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("NO_PROXY", "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return monkeypatch


async def test_a_rotated_key_is_picked_up(dialect: Dialect, tmp_path: Path) -> None:
    path = tmp_path / "key"
    async with raw_server(Reply([dialect.answer()])) as server:
        provider = dialect.provider(server.url, api_key=path.read_text)
        for key in ("first", "second"):
            path.write_text(f"{key}\n")
            done(await collect(provider))
    heads = [seen.head.lower() for seen in server.seen]
    assert [f"{dialect.key_header}{key}\r\n" in head for key, head in zip(("first", "second"), heads, strict=True)]
    assert "second" not in heads[0]


async def test_without_a_key_no_credential_is_sent(dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.answer()])) as server:
        done(await collect(dialect.provider(server.url)))
    assert dialect.key_header.split(":")[0] not in server.seen[0].head.lower()


async def test_a_key_that_cannot_be_read_or_sent_is_a_failure_without_the_key(dialect: Dialect, tmp_path: Path) -> None:
    def leaky() -> str:
        raise ValueError("sk-canary")

    missing = tmp_path / "key"
    for read, complaint in [
        (missing.read_text, f"the API key cannot be read: [Errno 2] No such file or directory: '{missing}'"),
        (leaky, "the API key cannot be read: ValueError"),
        (lambda: "sk-canary\nX-Evil: 1", "the API key holds characters that an HTTP header cannot carry"),
    ]:
        last = failed(await collect(dialect.provider("http://127.0.0.1:1", api_key=read)))
        assert (last.failure.code, last.failure.message) == ("F-ENV", complaint)
        assert "canary" not in repr(last)


async def test_a_proxy_of_the_environment_forwards(dialect: Dialect, no_proxy_settings: pytest.MonkeyPatch) -> None:
    async with raw_server(Reply([dialect.answer("by proxy")])) as server, forward_proxy() as proxy:
        no_proxy_settings.setenv("HTTP_PROXY", proxy.url)
        events = await collect(dialect.provider(server.url.replace("127.0.0.1", "models.invalid")))
    assert done(events).message.text == "by proxy"
    assert [line.startswith("POST http://models.invalid:") for line in proxy.asked] == [True]


async def test_a_host_that_is_excepted_is_reached_without_the_proxy(no_proxy_settings: pytest.MonkeyPatch) -> None:
    async with raw_server(Reply([answer("straight")])) as server, forward_proxy() as proxy:
        no_proxy_settings.setenv("HTTP_PROXY", proxy.url)
        no_proxy_settings.setenv("NO_PROXY", "example.com,127.0.0.1")
        assert done(await collect(CHAT_DIALECT.provider(server.url))).message.text == "straight"
    assert proxy.asked == []


async def test_a_provider_may_ignore_proxies(no_proxy_settings: pytest.MonkeyPatch) -> None:
    async with raw_server(Reply([answer("straight")])) as server:
        no_proxy_settings.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        assert done(await collect(CHAT_DIALECT.provider(server.url, proxied=False))).message.text == "straight"


async def test_https_goes_through_a_tunnel_of_the_proxy(no_proxy_settings: pytest.MonkeyPatch) -> None:
    server_tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server_tls.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    no_proxy_settings.setattr(http, "_tls", lambda: ssl.create_default_context(cafile=str(CERTIFICATES / "ca.pem")))
    raw = RawServer([Reply([answer("by tunnel")])])
    server = await asyncio.start_server(raw.serve, "127.0.0.1", 0, ssl=server_tls)
    async with server, forward_proxy() as proxy:
        no_proxy_settings.setenv("HTTPS_PROXY", proxy.url)
        where = f"localhost:{server.sockets[0].getsockname()[1]}"
        events = await collect(CHAT_DIALECT.provider(f"https://{where}/v1"))
    assert done(events).message.text == "by tunnel"
    assert proxy.asked == [f"CONNECT {where} HTTP/1.1"]


async def test_a_query_in_the_base_url_is_kept(dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.answer()])) as server:
        done(await collect(dialect.provider(f"{server.url}/?api-version=7")))
    path = f"/v1/{dialect.wire.path.removeprefix('/v1').lstrip('/')}"
    assert server.seen[0].head.startswith(f"POST {path}?api-version=7 ")


@pytest.mark.parametrize("base", ["/v1", "/v1/", "", "/"])
async def test_the_version_of_messages_may_stand_in_the_base_url(base: str) -> None:
    async with raw_server(Reply([MESSAGES_DIALECT.answer()])) as server:
        done(await collect(MESSAGES_DIALECT.provider(server.url.removesuffix("/v1") + base)))
    assert server.seen[0].head.startswith("POST /v1/messages ")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "models:8000",
        "ftp://models/v1",
        "http://",
        "http://me:secret@models/v1",
        "ftp://me:secret@models",
        "http://h:x/v1",
    ],
)
def test_an_unusable_base_url_is_refused_at_once(url: str) -> None:
    with pytest.raises(ValueError, match="baseURL") as caught:
        CHAT_DIALECT.provider(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "api", "spoken"),
    [
        ("OpenAI", "ChatCompletions", "openai-completions"),
        ("OpenAI", "Responses", "openai-responses"),
        ("Anthropic", "ChatCompletions", "anthropic-messages"),
        ("Local", "ChatCompletions", "openai-completions"),
    ],
)
def test_a_provider_is_made_by_its_name(provider: str, api: str, spoken: str) -> None:
    made = create(provider, model="m", api=api)
    assert (made.api, made.provider, made.model) == (spoken, provider.lower(), "m")


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"provider": "Gemini", "model": "m"},
            "'Gemini' is not known; there are OpenAI, Anthropic",
        ),
        ({"provider": "OpenAI", "model": "m", "api": "Soap"}, r"model\.api 'Soap' is not known"),
        ({"provider": "OpenAI"}, r"model\.name is missing"),
        ({"provider": "Anthropic"}, r"model\.name is missing"),
    ],
)
def test_what_no_provider_can_be_made_of_is_refused(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        create(**given)  # type: ignore[arg-type]
