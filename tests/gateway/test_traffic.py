"""What the gateway tells of its traffic: figures by route, and a log without tokens, bodies or texts of errors."""

import json
import logging

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from pilothouse.gateway.logs import JSONLines
from tests.gateway.desk import Desk

SECRET = "the-tenants-own-words"


def figure(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return registry.get_sample_value(f"pilothouse_gateway_{name}", labels) or 0.0


async def test_requests_are_counted_by_route_and_status(desk: Desk) -> None:
    token = await desk.token()
    await desk.post("put_blob", token, b"x")
    await desk.post("put_blob", token, b"y")
    await desk.post("get_blob", token, '{"digest":"none"}')
    counted = desk.registry
    assert figure(counted, "requests_total", route="/store/v1/token", status="200") == 1
    assert figure(counted, "requests_total", route="/store/v1/put_blob", status="200") == 2
    assert figure(counted, "requests_total", route="/store/v1/get_blob", status="404") == 1
    assert figure(counted, "request_seconds_count", route="/store/v1/put_blob") == 2


async def test_refused_tokens_are_counted_by_their_reason(desk: Desk) -> None:
    await desk.post("put_blob", None)
    await desk.post("put_blob", "made-up")
    await desk.exchange("made-up")
    await desk.exchange(desk.kube.pod("none"))
    await desk.exchange(desk.kube.pod("none", namespace="team-b"))
    for reason, count in {"no token": 1, "attempt token": 1, "token review": 1, "no attempt": 2}.items():
        assert figure(desk.registry, "refused_tokens_total", reason=reason) == count


async def test_a_path_that_somebody_made_up_is_no_label(desk: Desk) -> None:
    for path in ("/a", "/b/c", "/store/v1/x", "/store/v2/open_session"):
        await desk.client.post(desk.url + path)
    assert figure(desk.registry, "requests_total", route="none", status="404") == 4
    assert "/b/c" not in generate_latest(desk.registry).decode()


async def test_a_route_of_people_is_counted_by_its_pattern(desk: Desk) -> None:
    await desk.client.get(f"{desk.url}/read/v1/namespaces/{SECRET}/runs")
    assert SECRET not in generate_latest(desk.registry).decode()
    assert figure(desk.registry, "requests_total", route="/read/v1/namespaces/{namespace}/runs", status="401") == 1


async def test_the_log_tells_of_refusals_and_defects_without_tokens_bodies_or_their_texts(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    token = await desk.token()
    await desk.post("put_blob", f"{token}x", SECRET)
    await desk.exchange(SECRET)
    await desk.post("get_blob", token, json.dumps({"digest": SECRET}))
    await desk.post("finish", token, json.dumps({"state": SECRET}))

    def broken(ref: object) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(desk.store, "attempt_store", broken)
    await desk.post("put_blob", token, b"x")
    ours = [record for record in caplog.records if record.name.startswith("pilothouse")]
    lines = [json.loads(JSONLines().format(record)) for record in ours]
    assert [line.get("status") for line in lines if line["message"] == "not served"] == [401, 401, 404, 400, 500]
    [defect] = [line for line in lines if line["level"] == "error"]
    assert defect["error"] == "RuntimeError"
    assert "broken" in defect["at"][-1], "where it happened"
    for secret in (SECRET, token, desk.projected):
        assert secret not in json.dumps(lines)


def test_a_line_of_the_log_is_json_and_tells_where_an_exception_was_raised_but_not_its_text() -> None:
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        info = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("uvicorn.error", logging.ERROR, "f", 1, "failed:\n%s", ("now",), info)
    text = JSONLines().format(record)
    assert "\n" not in text
    line = json.loads(text)
    assert (line["level"], line["logger"], line["message"]) == ("error", "uvicorn.error", "failed:\nnow")
    assert line["error"] == "ValueError"
    assert SECRET not in text
