"""The three formats against llmock, which breaks streams on demand and judges the client."""

from typing import Any

import httpx
import pytest

from pilothouse.models.http import Limits
from pilothouse.models.http_provider import HttpProvider
from pilothouse.models.patience import Patience
from pilothouse.models.provider import ToolSpec
from tests.models.dialects import MESSAGES_DIALECT, Dialect
from tests.models.wire import collect, done, failed, request

pytestmark = pytest.mark.peer("llmock")

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolSpec("get_weather", "Tells the weather.", CITY)


class Llmock:
    """Speaks to llmock's admin routes."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._admin = url.removesuffix("/v1") + "/_llmock"
        httpx.post(f"{self._admin}/reset").raise_for_status()

    def plan(self, *behaviors: dict[str, Any]) -> None:
        httpx.post(f"{self._admin}/scenario", json={"behaviors": behaviors}).raise_for_status()

    def findings(self, *severities: str) -> list[str]:
        """What llmock holds against the client: findings of these severities, or all."""
        found = httpx.get(f"{self._admin}/verdict").json()["findings"]
        return [finding["code"] for finding in found if not severities or finding["severity"] in severities]


@pytest.fixture
def llmock_server(llmock_url: str) -> Llmock:
    return Llmock(llmock_url)


@pytest.fixture
def provider(llmock_server: Llmock, dialect: Dialect) -> HttpProvider:
    root = llmock_server.url.removesuffix("/v1")
    url, model = (f"{root}/anthropic", "claude-sonnet-4-6") if dialect is MESSAGES_DIALECT else (f"{root}/v1", "gpt-4o")
    return dialect.provider(url, model, api_key=lambda: "k", patience=Patience(limits=Limits(idle=0.5)))


async def test_an_answer_with_usage(provider: HttpProvider, llmock_server: Llmock) -> None:
    llmock_server.plan({"type": "reply", "text": "It is sunny."})
    message = done(await collect(provider)).message
    assert message.text == "It is sunny."
    assert message.usage.input > 0
    assert message.usage.output > 0
    assert llmock_server.findings() == []


async def test_a_tool_call_with_arguments_by_its_schema(provider: HttpProvider) -> None:
    (call,) = done(await collect(provider, request("weather?", tools=[WEATHER]))).message.tool_calls
    assert call.name == "get_weather"
    assert isinstance(call.arguments["city"], str)


async def test_malformed_arguments_are_kept_as_text(provider: HttpProvider, llmock_server: Llmock) -> None:
    llmock_server.plan({"type": "tool_fault", "kind": "malformed_arguments"})
    (call,) = done(await collect(provider, request("weather?", tools=[WEATHER]))).message.tool_calls
    assert call.arguments_text
    assert call.arguments_error


async def test_rate_limits_are_waited_out_without_a_complaint(provider: HttpProvider, llmock_server: Llmock) -> None:
    llmock_server.plan({"type": "fail", "status": 429, "retry_after": 0.2, "times": 2})
    assert done(await collect(provider)).message.text
    assert llmock_server.findings() == []


@pytest.mark.parametrize(("status", "code"), [(400, "F-INP"), (401, "F-SEC"), (404, "F-INP"), (422, "F-INP")])
async def test_final_refusals_are_not_repeated(
    provider: HttpProvider, llmock_server: Llmock, status: int, code: str
) -> None:
    llmock_server.plan({"type": "fail", "status": status, "times": None})
    failure = failed(await collect(provider)).failure
    assert (failure.code, failure.status, failure.retryable) == (code, status, False)
    assert llmock_server.findings() == []


@pytest.mark.parametrize(
    ("kind", "code"),
    [("disconnect", "F-DEP"), ("truncate", "F-DEP"), ("malformed", "F-DEP"), ("stall", "F-TMO")],
)
async def test_a_broken_stream_is_a_failure_after_which_the_same_call_succeeds(
    provider: HttpProvider, llmock_server: Llmock, kind: str, code: str
) -> None:
    fault: dict[str, Any] = {"type": "stream_fault", "kind": kind, "after_chunks": 6}
    reply = {"type": "reply", "text": "It is sunny in Cologne, and it will stay so for days."}
    llmock_server.plan(fault | ({"stall_seconds": 5} if kind == "stall" else {}), reply)
    last = failed(await collect(provider))
    assert (last.failure.code, last.failure.retryable) == (code, True)
    assert last.message.text
    assert (last.message.stop_reason, last.message.error_code) == ("error", code)
    assert done(await collect(provider)).message.text
    assert llmock_server.findings("error") == []


async def test_slow_first_bytes_are_waited_for(provider: HttpProvider, llmock_server: Llmock) -> None:
    llmock_server.plan({"type": "slow_first_token", "seconds": 0.1})
    assert done(await collect(provider)).message.text
