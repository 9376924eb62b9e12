"""What each answer of an API server means to the operator. The suite in `conformance` shows what a real one answers."""

from typing import Any

import httpx2
import pytest

from pilothouse_operator.kube.client import KubeClient
from pilothouse_operator.kube.errors import AlreadyExists, ApiUnavailable, Changed, KubeError, Refused
from pilothouse_operator.kube.resources import CONFIG_MAPS, PODS

IMMUTABLE = {"message": "it is immutable", "reason": "Invalid", "details": {"causes": [{"field": "metadata.uid"}]}}
INVALID = {"message": "it is wrong", "reason": "Invalid", "details": {"causes": [{"field": "spec.hostname"}]}}
ANSWERS: list[tuple[int, Any, type[KubeError]]] = [
    (401, {"message": "Unauthorized"}, ApiUnavailable),
    (403, {"message": "pods is forbidden", "reason": "Forbidden"}, Refused),
    (403, {"message": 'pods "x" is forbidden: not yet ready to handle request', "reason": "Forbidden"}, ApiUnavailable),
    (409, {"message": "it exists", "reason": "AlreadyExists"}, AlreadyExists),
    (409, {"message": "Precondition failed", "reason": "Conflict"}, Changed),
    (422, IMMUTABLE, Changed),
    (422, INVALID, Refused),
    (422, {"message": "denied request", "reason": "Invalid", "details": None}, Refused),
    (400, {"message": "it cannot be decoded", "reason": "BadRequest"}, Refused),
    (400, {"message": 'admission webhook "w" denied the request: no', "code": 400}, Refused),
    (405, {"message": "bad"}, KubeError),
    (408, {}, ApiUnavailable),
    (413, "request entity too large", Refused),
    (429, {"message": "too many requests"}, ApiUnavailable),
    (500, {"message": "etcdserver: leader changed"}, ApiUnavailable),
    (502, "<html>bad gateway</html>", ApiUnavailable),
    (503, [], ApiUnavailable),
    (504, {"message": "timed out"}, ApiUnavailable),
]


def client(answer: httpx2.Response | Exception) -> KubeClient:
    def handle(_: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return KubeClient(httpx2.AsyncClient(transport=httpx2.MockTransport(handle), base_url="https://api.example"))


def response(code: int, body: Any) -> httpx2.Response:
    return httpx2.Response(code, text=body) if isinstance(body, str) else httpx2.Response(code, json=body)


@pytest.mark.parametrize(("code", "body", "error"), ANSWERS)
async def test_every_refusal_has_its_meaning(code: int, body: Any, error: type[KubeError]) -> None:
    kube = client(response(code, body))
    with pytest.raises(KubeError) as raised:
        await kube.patch(CONFIG_MAPS, "a", "b", {})
    assert type(raised.value) is error
    if isinstance(body, dict):
        assert body.get("message", "") in str(raised.value)


@pytest.mark.parametrize(("code", "forbidden"), [(403, True), (422, False), (404, False), (400, False)])
async def test_only_a_403_is_forbidden(code: int, forbidden: bool) -> None:
    with pytest.raises(Refused) as raised:
        await client(response(code, {"message": "no"})).create(PODS, "a", {})
    assert raised.value.forbidden is forbidden


@pytest.mark.parametrize("error", [httpx2.ConnectError("refused"), httpx2.ReadTimeout(""), OSError("no route")])
async def test_an_api_server_that_cannot_be_reached_is_unavailable(error: Exception) -> None:
    with pytest.raises(ApiUnavailable, match="cannot be reached"):
        await client(error).get(PODS, "a", "b")


async def test_what_is_gone_is_no_error() -> None:
    kube = client(response(404, {"message": "not found"}))
    assert await kube.get(PODS, "a", "b") is None
    assert await kube.patch(PODS, "a", "b", {}) is None
    assert await kube.log("a", "b", "main") is None
    assert await kube.delete(PODS, "a", "b", "u", "1") is True


async def test_a_log_that_the_kubelet_cannot_find_is_none() -> None:
    assert (
        await client(response(200, "unable to retrieve container logs for containerd://77d7")).log("a", "b", "c")
        is None
    )
    assert await client(response(200, "said: unable to retrieve")).log("a", "b", "c") == b"said: unable to retrieve"


@pytest.mark.parametrize(("version", "done"), [("", True), ("7", False)])
async def test_a_deletion_that_comes_too_late_is_done_only_where_any_version_would_do(version: str, done: bool) -> None:
    kube = client(response(409, {"message": "the UID in the precondition", "reason": "Conflict"}))
    assert await kube.delete(PODS, "a", "b", "u", version) is done


async def test_a_long_list_comes_in_pages() -> None:
    asked: list[str] = []
    pages = [
        {"items": [{"metadata": {"name": "a"}}], "metadata": {"continue": "next"}},
        {"items": None, "metadata": {"continue": "more"}},
        {"items": [{"metadata": {"name": "b"}}], "metadata": {}},
    ]

    def handle(request: httpx2.Request) -> httpx2.Response:
        asked.append(f"{request.url.params.get('continue', '')} {request.url.params['labelSelector']}")
        return httpx2.Response(200, json=pages.pop(0))

    kube = KubeClient(httpx2.AsyncClient(transport=httpx2.MockTransport(handle), base_url="https://api.example"))
    found = await kube.names(PODS, None, "team=a")
    assert [obj["metadata"]["name"] for obj in found] == ["a", "b"]
    assert asked == [" team=a", "next team=a", "more team=a"]
