"""What an Agent's spec says about its model is what the model is asked for."""

from typing import Any

import pytest

from pilothouse.agents.definition import make_provider, make_task
from pilothouse.agents.session import CompactionSettings
from pilothouse.api.agent import Agent, AgentSpec, Compaction
from pilothouse.models.provider import ModelOptions
from pilothouse.records.failures import Failed
from pilothouse.records.runs import StepId
from tests.models.dialects import CHAT_DIALECT, MESSAGES_DIALECT, RESPONSES_DIALECT, Dialect
from tests.models.wire import Reply, collect, done, raw_server

OPTIONS = {"temperature": 0.5, "topP": 0.9, "maxOutputTokens": 10, "thinking": "XHigh", "seed": 7, "stop": ["END"]}


def spec(**model: Any) -> AgentSpec:
    manifest = {"metadata": {"name": "a"}, "spec": {"model": {"name": "m", **model}, "prompt": {"system": "Hi."}}}
    return Agent.model_validate(manifest).spec


@pytest.mark.parametrize(
    ("model", "dialect"),
    [
        ({"provider": "OpenAI"}, CHAT_DIALECT),
        ({"provider": "OpenAI", "api": "Responses"}, RESPONSES_DIALECT),
        ({"provider": "Anthropic"}, MESSAGES_DIALECT),
    ],
    ids=["chat", "responses", "messages"],
)
async def test_the_format_the_key_and_the_prices_are_those_of_the_spec(model: dict[str, Any], dialect: Dialect) -> None:
    async with raw_server(Reply([dialect.answer()])) as server:
        agent = spec(**model, baseURL=server.url, prices={"input": "1", "output": "1000000"})
        message = done(await collect(make_provider(agent, lambda: "sk-1"))).message
    assert message.api == dialect.wire.api
    assert f"{dialect.key_header}sk-1" in server.seen[0].head.lower()
    assert message.usage.cost.output == message.usage.output


def test_the_options_are_those_of_the_spec() -> None:
    agent = spec(provider="OpenAI", options=OPTIONS)
    given: dict[str, Any] = {"session": None, "step": StepId("s"), "attempt": 1, "message": "", "arguments": {}}
    task = make_task(agent, **given, instructions="")
    assert task.options == ModelOptions(
        temperature=0.5, top_p=0.9, max_output_tokens=10, thinking="xhigh", seed=7, stop=("END",)
    )


@pytest.mark.parametrize(("percent", "reserve"), [(80, 200_000), (100, 1)])
def test_a_conversation_is_compacted_by_the_models_window(percent: int, reserve: int) -> None:
    agent = spec(provider="OpenAI", contextWindow=1_000_000)
    agent = agent.model_copy(update={"compaction": Compaction(at_percent=percent, keep_tokens=7)})
    given: dict[str, Any] = {"session": None, "step": StepId("s"), "attempt": 1, "message": "", "arguments": {}}
    task = make_task(agent, **given, instructions="")
    assert task.compaction == CompactionSettings(1_000_000, reserve, 7)
    assert make_task(spec(provider="OpenAI"), **given, instructions="").compaction is None


def test_a_base_url_that_cannot_be_used_is_a_failure_of_the_input() -> None:
    with pytest.raises(Failed, match="baseURL must not hold a user or password") as caught:
        make_provider(spec(provider="Anthropic", baseURL="https://me:secret@models"), None)
    assert caught.value.failure.code == "F-INP"
