"""What the answers of a gateway, or of whatever stands in its place, mean to the client."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from starlette.responses import PlainTextResponse, Response

from pilothouse.records.values import ValueRefused
from pilothouse.store.errors import Conflict, NotFound, StoreUnavailable, StoreUnusable, Superseded
from pilothouse.store.ports import AttemptStore
from pilothouse.store.remote import open_remote_store
from pilothouse.store.remote.wire import LARGE, SMALL
from tests.gateway.serving import CA, CERTIFICATES
from tests.store.remote.doors import Door, door, problem


@pytest.fixture
async def at() -> AsyncIterator[Door]:
    async with door() as at:
        yield at


@pytest.fixture
async def store(at: Door, tmp_path: Path) -> AsyncIterator[AttemptStore]:
    (tmp_path / "token").write_text("projected")
    async with open_remote_store(at.url, tmp_path / "token", CA) as store:
        yield store


@pytest.mark.parametrize(
    ("status", "error"),
    [(403, Superseded), (404, NotFound), (409, Conflict), (422, ValueRefused), (503, StoreUnavailable)],
)
async def test_a_refusal_of_the_store_comes_back_as_it_was(
    at: Door, store: AttemptStore, status: int, error: type[Exception]
) -> None:
    at.answers["put_blob"] = [problem(status, error.__name__, "in its own \0 words")]
    with pytest.raises(error) as raised:
        await store.put_blob(b"x")
    assert raised.type is error
    assert str(raised.value) == "in its own \0 words"


PASSING: dict[str, Response] = {
    "500": problem(500, "InternalError"),
    "502 of a proxy": PlainTextResponse("<html>bad gateway</html>", 502),
    "503 without a body": Response(status_code=503),
    "504": problem(504),
    "429": problem(429),
    "408": problem(408, "TooSlow"),
    "a redirect": Response(status_code=307, headers={"Location": "https://elsewhere.example"}),
    "a success that cannot be read": PlainTextResponse("ok"),
    "a success in another shape": problem(200, "x"),
    "a success with wrong types": Response('{"digest":7,"size":"x"}'),
}


@pytest.mark.parametrize("answer", PASSING.values(), ids=PASSING.keys())
async def test_what_may_pass_by_itself_is_an_outage(at: Door, store: AttemptStore, answer: Response) -> None:
    at.answers["put_blob"] = [answer]
    with pytest.raises(StoreUnavailable, match="the store API"):
        await store.put_blob(b"x")
    assert len(at.of("put_blob")) == 1, "nothing is sent twice"


LASTING: dict[str, Response] = {
    "400": problem(400, "BadRequest", "`session` must be a str"),
    "404 of another server": PlainTextResponse("not found", 404),
    "405": problem(405, "NoSuchRoute"),
    "403 without a reason": problem(403),
}


@pytest.mark.parametrize("answer", LASTING.values(), ids=LASTING.keys())
async def test_what_does_not_pass_is_told_as_it_is(at: Door, store: AttemptStore, answer: Response) -> None:
    at.answers["put_blob"] = [answer]
    with pytest.raises(StoreUnusable, match=f"answered {answer.status_code}"):
        await store.put_blob(b"x")


async def test_a_request_that_no_gateway_takes_is_refused_here(at: Door, store: AttemptStore) -> None:
    with pytest.raises(ValueRefused, match=f"{LARGE + 1:,} bytes; the store API takes at most {LARGE:,}"):
        await store.put_blob(bytes(LARGE + 1))
    with pytest.raises(ValueRefused, match=f"at most {SMALL:,}"):
        await store.get_blob("x" * SMALL)
    assert at.of("put_blob") + at.of("get_blob") == []


async def test_nothing_is_said_to_a_server_that_our_authority_does_not_know(at: Door, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("projected")
    other = (CERTIFICATES / "other-ca.pem").read_text()
    with pytest.raises(StoreUnavailable, match="certificate verify failed"):
        async with open_remote_store(at.url, tmp_path / "token", other):
            pytest.fail("opened")
    assert at.asked == []


async def test_nothing_is_said_to_a_server_of_another_name(at: Door, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("projected")
    with pytest.raises(StoreUnavailable, match="certificate verify failed"):
        async with open_remote_store(at.url.replace("127.0.0.1", "127.1"), tmp_path / "token", CA):
            pytest.fail("opened")


@pytest.mark.parametrize("url", ["http://gateway.example", "gateway.example", "", "ftp://gateway.example"])
async def test_tokens_travel_in_https_alone(url: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must begin with https://"):
        async with open_remote_store(url, tmp_path / "token", CA):
            pytest.fail("opened")


@pytest.mark.parametrize("ca", ["", "no certificate"])
async def test_a_ca_that_is_none_is_refused(ca: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no certificate in PEM"):
        async with open_remote_store("https://gateway.example", tmp_path / "token", ca):
            pytest.fail("opened")


async def test_a_gateway_that_is_not_there_is_an_outage(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(str(uuid4()))
    with pytest.raises(StoreUnavailable, match="cannot be reached now"):
        async with open_remote_store("https://127.0.0.1:9", tmp_path / "token", CA):
            pytest.fail("opened")
