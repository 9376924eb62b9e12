"""The gateway's questions on the wire to an API server: what is asked, and that only a clear yes is one."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pilothouse.gateway.kubeapi import Identity, KubeUnavailable, Unauthenticated, open_kube_api
from pilothouse_operator.kube import reviews
from pilothouse_operator.kube.client import kube_client
from pilothouse_operator.kube.reviews import KEPT, Reviews

POD = {
    "username": "system:serviceaccount:team-a:default",
    "uid": "u-1",
    "groups": ["system:serviceaccounts", "system:authenticated"],
    "extra": {"authentication.kubernetes.io/pod-uid": ["p-1"]},
}
IDENTITY = Identity(
    POD["username"],  # type: ignore[arg-type]
    "u-1",
    ("system:serviceaccounts", "system:authenticated"),
    {"authentication.kubernetes.io/pod-uid": ("p-1",)},
)
TOKENS, ACCESS = "/apis/authentication.k8s.io/v1/tokenreviews", "/apis/authorization.k8s.io/v1/subjectaccessreviews"


@dataclass
class ApiServer:
    """What it was asked, as (path, spec), and the statuses or whole responses with which it answers."""

    url: str = ""
    asked: list[tuple[str, Any]] = field(default_factory=list)
    answers: list[dict[str, Any] | Response] = field(default_factory=list)

    async def serve(self, request: Request) -> Response:
        body = await request.body()
        self.asked.append((request.url.path, json.loads(body)["spec"] if body else None))
        answer = self.answers.pop(0)
        return answer if isinstance(answer, Response) else JSONResponse({"kind": "X", "status": answer}, 201)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    api = ApiServer()
    app = Starlette(routes=[Route("/{path:path}", api.serve, methods=["GET", "POST"])])
    config, state = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", http="h11"), ServerState()
    config.load()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: H11Protocol(config, state, app_state={}), "127.0.0.1", 0)
    api.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    yield api
    listening.close()
    for connection in list(state.connections):
        connection.transport.abort()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@asynccontextmanager
async def asking(url: str, tmp_path: Path, clock: Clock) -> AsyncIterator[Reviews]:
    async with kube_client(kubeconfig(url, tmp_path)) as client:
        yield Reviews(client, clock)


@pytest.fixture
async def kube(server: ApiServer, tmp_path: Path, clock: Clock) -> AsyncIterator[Reviews]:
    async with asking(server.url, tmp_path, clock) as kube:
        yield kube


def kubeconfig(url: str, folder: Path) -> Path:
    file = folder / "kubeconfig"
    context = {"name": "c", "context": {"cluster": "c", "user": "c"}}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [context],
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "c", "user": {"token": "the-gateways-own"}}],
    }
    file.write_text(json.dumps(config))
    return file


def good(**changes: Any) -> dict[str, Any]:
    return {"authenticated": True, "user": POD, "audiences": ["pilothouse-store"]} | changes


async def test_a_pods_token_is_reviewed_for_our_audience(server: ApiServer, kube: Reviews) -> None:
    server.answers = [good()]
    assert await kube.review("t", "pilothouse-store") == IDENTITY
    assert server.asked == [(TOKENS, {"token": "t", "audiences": ["pilothouse-store"]})]


async def test_a_pods_token_is_asked_about_each_time(server: ApiServer, kube: Reviews) -> None:
    server.answers = [good(), good(authenticated=False)]
    await kube.review("t", "pilothouse-store")
    with pytest.raises(Unauthenticated):
        await kube.review("t", "pilothouse-store")


async def test_a_callers_token_is_reviewed_for_the_api_server_and_remembered_for_ten_seconds(
    server: ApiServer, kube: Reviews, clock: Clock
) -> None:
    server.answers = [good(audiences=["https://kubernetes.default.svc"]), good(authenticated=False)]
    assert await kube.review("t") == IDENTITY
    clock.now += KEPT - 1
    assert await kube.review("t") == IDENTITY
    assert server.asked == [(TOKENS, {"token": "t"})]
    clock.now += 1
    with pytest.raises(Unauthenticated):
        await kube.review("t")
    assert KEPT <= 10


async def test_a_refused_token_is_not_remembered_and_no_other_token_is_taken_for_a_known_one(
    server: ApiServer, kube: Reviews
) -> None:
    server.answers = [good(authenticated=False), good(), good(authenticated=False)]
    with pytest.raises(Unauthenticated):
        await kube.review("t")
    assert await kube.review("t") == IDENTITY
    with pytest.raises(Unauthenticated):
        await kube.review("t2")


NOBODY: dict[str, dict[str, Any]] = {
    "not authenticated": {"authenticated": False},
    "authenticated in words": good(authenticated="true"),
    "an empty status": {},
    "an audience of others": good(audiences=["https://kubernetes.default.svc"]),
    "no audience, as of a server that knows none": {"authenticated": True, "user": POD},
    "an expired token": {"authenticated": False, "error": "[invalid bearer token, service account token has expired]"},
    "yes, but": good(error='pods "p" not found'),
    "nobody": {"authenticated": True, "audiences": ["pilothouse-store"]},
    "somebody without a name": good(user={"username": ""}),
    "somebody who is no object": good(user="ann"),
}


@pytest.mark.parametrize("status", NOBODY.values(), ids=NOBODY.keys())
async def test_what_is_no_clear_yes_is_nobody(server: ApiServer, kube: Reviews, status: dict[str, Any]) -> None:
    server.answers = [status]
    with pytest.raises(Unauthenticated):
        await kube.review("t", "pilothouse-store")


def status_object(code: int, message: str) -> Response:
    return JSONResponse({"kind": "Status", "code": code, "message": message, "reason": "R"}, code)


UNKNOWN: dict[str, Callable[[], dict[str, Any] | Response]] = {
    "it cannot look": lambda: {"authenticated": False, "error": "etcdserver: request timed out"},
    "500": lambda: status_object(500, "internal"),
    "503": lambda: PlainTextResponse("apiserver not ready", 503),
    "429": lambda: status_object(429, "too many requests"),
    "we lack the right": lambda: status_object(403, 'User "gateway" cannot create resource'),
    "our own token is refused": lambda: status_object(401, "Unauthorized"),
    "no such API": lambda: status_object(404, "the server could not find the requested resource"),
    "no status": lambda: JSONResponse({"kind": "TokenReview"}, 201),
    "a status that is no object": lambda: JSONResponse({"status": "yes"}, 201),
    "no JSON": lambda: PlainTextResponse("authenticated: true", 201),
    "a list": lambda: JSONResponse([good()], 201),
}


@pytest.mark.parametrize("answer", UNKNOWN.values(), ids=UNKNOWN.keys())
async def test_an_answer_that_cannot_be_had_is_an_outage_and_never_a_yes(
    server: ApiServer, kube: Reviews, answer: Callable[[], dict[str, Any] | Response]
) -> None:
    server.answers = [answer(), answer(), answer()]
    with pytest.raises(KubeUnavailable):
        await kube.review("t", "pilothouse-store")
    with pytest.raises(KubeUnavailable):
        await kube.review("t")
    if isinstance(server.answers[0], Response):
        with pytest.raises(KubeUnavailable):
            await kube.allowed(IDENTITY, "get", "pilothouse.dev", "workflows", "team-a")


async def test_an_api_server_that_is_away_or_silent_is_an_outage(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with asking(url, tmp_path, clock) as kube:
            monkeypatch.setattr(reviews, "_PATIENCE", 0.05)
            with pytest.raises(KubeUnavailable, match="within"):
                await kube.review("t", "pilothouse-store")
    async with asking(url, tmp_path, clock) as kube:
        monkeypatch.setattr(reviews, "_PATIENCE", 10.0)
        with pytest.raises(KubeUnavailable, match="cannot be reached"):
            await kube.review("t", "pilothouse-store")
        with pytest.raises(KubeUnavailable):
            await kube.namespace_uid("team-a")


async def test_a_right_is_asked_for_as_the_caller_with_all_that_is_known_of_them(
    server: ApiServer, kube: Reviews
) -> None:
    server.answers = [{"allowed": True}, {"allowed": True}]
    assert await kube.allowed(IDENTITY, "get", "pilothouse.dev", "workflows", "team-a", "nightly")
    assert await kube.allowed(IDENTITY, "get", "", "pods", "team-a", subresource="log")
    subject = {"user": IDENTITY.username, "uid": "u-1", "groups": POD["groups"], "extra": POD["extra"]}
    workflow = {
        "verb": "get",
        "group": "pilothouse.dev",
        "resource": "workflows",
        "namespace": "team-a",
        "name": "nightly",
    }
    log = {"verb": "get", "resource": "pods", "subresource": "log", "namespace": "team-a"}
    assert server.asked == [(ACCESS, subject | {"resourceAttributes": asked}) for asked in (workflow, log)]


@pytest.mark.parametrize(
    "status", [{}, {"allowed": False}, {"allowed": "true"}, {"allowed": True, "denied": True}, {"denied": True}]
)
async def test_what_is_no_clear_yes_is_a_no(server: ApiServer, kube: Reviews, status: dict[str, Any]) -> None:
    server.answers = [status, {"allowed": True}]
    ask = ("get", "pilothouse.dev", "workflows", "team-a")
    assert await kube.allowed(IDENTITY, *ask) is False
    assert await kube.allowed(IDENTITY, *ask) is True, "a no is not remembered"


async def test_a_yes_is_remembered_for_ten_seconds_and_for_the_very_same_question_alone(
    server: ApiServer, kube: Reviews, clock: Clock
) -> None:
    ask = ("get", "pilothouse.dev", "workflows", "team-a", "nightly")
    server.answers = [{"allowed": True}]
    assert await kube.allowed(IDENTITY, *ask)
    clock.now += KEPT - 1
    assert await kube.allowed(IDENTITY, *ask)
    others = [
        (Identity(IDENTITY.username), ask),
        (Identity(IDENTITY.username, "u-1", ("system:masters",), IDENTITY.extra), ask),
        (IDENTITY, ("list", *ask[1:])),
        (IDENTITY, ("get", "", *ask[2:])),
        (IDENTITY, ("get", "pilothouse.dev", "packs", "team-a", "nightly")),
        (IDENTITY, ("get", "pilothouse.dev", "workflows", "team-b", "nightly")),
        (IDENTITY, ("get", "pilothouse.dev", "workflows", "team-a", "weekly")),
        (IDENTITY, (*ask, "status")),
    ]
    server.answers = [{"allowed": False} for _ in others]
    for identity, words in others:
        assert await kube.allowed(identity, *words) is False
    clock.now += 1
    server.answers = [{"allowed": False}]
    assert await kube.allowed(IDENTITY, *ask) is False


async def test_a_namespace_has_the_uid_that_it_has_now(server: ApiServer, kube: Reviews) -> None:
    uid = UUID(int=5)
    found = {"kind": "Namespace", "metadata": {"name": "team-a", "uid": str(uid)}}
    server.answers = [JSONResponse(found), status_object(404, "not found"), JSONResponse({"metadata": {}})]
    assert await kube.namespace_uid("team-a") == uid
    assert await kube.namespace_uid("team-a") is None
    with pytest.raises(KubeUnavailable):
        await kube.namespace_uid("team-a")
    assert server.asked[0][0] == "/api/v1/namespaces/team-a"


async def test_memory_of_answers_is_bounded(server: ApiServer, kube: Reviews) -> None:
    server.answers = [good() for _ in range(1_002)]
    for number in range(1_001):
        await kube.review(f"t{number}")
    await kube.review("t1000")
    assert len(server.answers) == 1
    await kube.review("t0")
    assert server.answers == [], "the oldest was forgotten"


async def test_the_gateway_finds_this_through_its_entry_point(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(server.url, tmp_path)))
    server.answers = [good()]
    async with open_kube_api() as kube:
        assert await kube.review("t", "pilothouse-store") == IDENTITY


async def test_without_an_api_server_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nothing"))
    with pytest.raises(RuntimeError, match="no way to an API server"):
        async with open_kube_api():
            pytest.fail("opened")
