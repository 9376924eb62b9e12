"""The loop with a model that writes its calls as text."""

from typing import Any

import pytest

from pilothouse.agents.definition import make_provider
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.api.agent import Agent
from pilothouse.models.written_calls import CLOSE, OPEN
from tests.agents.desk import STEP, Desk
from tests.agents.doubles import ATool, registry, says

BLOCK = f'{OPEN}{{"name": "say", "arguments": {{"text": "a"}}}}{CLOSE}'


async def run(desk: Desk, *script: dict[str, Any], tool: ATool, **spec: Any) -> AgentResult:
    model = {"provider": "Scripted", "script": [*script], "toolCalls": "Text"}
    agent = Agent.model_validate({"metadata": {"name": "a"}, "spec": {"model": model, **spec}}).spec
    task = AgentTask(desk.session, "Go.", step=STEP)
    return await run_agent(task, await desk.attempt(), make_provider(agent, None), registry(tool))


@pytest.mark.feature("B11")
@pytest.mark.feature("B12")
async def test_the_loop_runs_what_the_text_calls_and_answers_what_it_cannot_read(desk: Desk) -> None:
    tool = ATool()
    script = [says(f"{OPEN}say(1){CLOSE}"), says(f'{OPEN}{{"name": "say", "arguments": {{}}}}{CLOSE}'), says(BLOCK)]
    ended = await run(desk, *script, says("Done."), tool=tool)
    assert (ended.failure, ended.outputs["text"], tool.calls) == (None, "Done.", ["call_2_0"])
    messages = [entry.body["message"] for entry in (await desk.stored()).entries]
    results = [message["content"][0]["text"] for message in messages if message["role"] == "toolResult"]
    assert results[0].startswith("Tool tool_call not found. The tools are: say.")
    assert '"text" is a required property' in results[1]
    assert results[2] == "said a"
