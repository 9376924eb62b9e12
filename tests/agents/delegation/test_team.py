"""An agent asks another one: what that one is told, what comes back, and what is recorded of it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pilothouse.agents.delegation.origin import LINEAGE
from pilothouse.agents.delegation.tool import MAX_DEPTH
from pilothouse.agents.events import AgentEvent, ToolExecutionUpdate
from pilothouse.agents.hooks import Block, GatedCall
from pilothouse.records.events import EventType
from pilothouse.tools.sandbox.client import Sandbox
from pilothouse.tools.sandbox.local import local_sandbox
from tests.agents.delegation.scene import Scene, agent, asks, messages, says, text_of, uses
from tests.agents.desk import Desk


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


@pytest.mark.feature("B85")
async def test_an_agent_asks_another_which_has_a_session_of_its_own_and_says_whose_call_it_answers(desk: Desk) -> None:
    scene = Scene(
        desk,
        boss=agent(asks("scribe", tokens=1), says("Thanks.", tokens=2), tools=["scribe"]),
        scribe=agent(says("Written.", tokens=40)),
    )
    result = await scene.play()
    assert result.failure is None
    assert result.outputs["text"] == "Thanks."
    usage: Any = result.outputs["usage"]
    assert usage["totalTokens"] == 43
    [answer] = await scene.results()
    assert (text_of(answer), answer["isError"], answer["usage"]["totalTokens"]) == ("Written.", False, 40)
    sessions = await scene.sessions()
    [child] = [session for id, session in sessions.items() if id != desk.session]
    assert answer["details"] == {"session": str(child.id), "turns": 1}
    asked = next(entry for entry in sessions[desk.session].entries if entry.body["message"]["role"] == "assistant")
    lineage, *rest = child.entries
    assert lineage.body["customType"] == LINEAGE
    assert lineage.body["data"] == {
        "agent": "boss",
        "parentSession": str(desk.session),
        "turn": str(asked.id),
        "ordinal": 0,
        "call": answer["toolCallId"],
        "depth": 1,
    }
    assert [text_of(entry.body["message"]) for entry in rest] == ["Go, scribe.", "Written."]


async def test_the_run_hears_of_what_an_asked_agent_does(desk: Desk) -> None:
    scene = Scene(desk, boss=agent(asks("scribe"), says("Thanks."), tools=["scribe"]), scribe=agent(says("Written.")))
    await scene.play()
    told = [event.type for event in await desk.events()][1:]
    turn = EventType.TURN_RECORDED
    assert told == [turn, EventType.TOOL_STARTED, turn, EventType.TOOL_FINISHED, turn]


async def test_what_an_asked_agent_says_on_its_way_is_a_partial_result(desk: Desk) -> None:
    updates: list[str] = []

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, ToolExecutionUpdate):
            updates.append(getattr(event.partial_result.content[0], "text", ""))

    scene = Scene(desk, boss=agent(asks("scribe"), says("Thanks."), tools=["scribe"]), scribe=agent(says("Written.")))
    await scene.play(emit=listen)
    assert updates == ["Written."]


INPUTS = [
    {"name": "topic", "required": True, "description": "What about."},
    {"name": "lines", "type": "integer", "default": 3},
    {"name": "tone", "enum": ["dry", "warm"]},
]
SCHEMA = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}


async def test_inputs_are_arguments_with_their_defaults_and_outputs_are_data(desk: Desk) -> None:
    scene = Scene(
        desk,
        boss=agent(asks("scribe", arguments={"topic": "cats"}), says("Thanks."), tools=["scribe"]),
        scribe=agent(says('```json\n{"ok": true}\n```'), inputs=INPUTS, outputs={"schema": SCHEMA}),
    )
    await scene.play()
    [answer] = await scene.results()
    assert text_of(answer) == '{"ok": true}'
    [[question, *_]] = await scene.others()
    assert text_of(question).endswith('```json\n{\n  "topic": "cats",\n  "lines": 3\n}\n```')


@pytest.mark.parametrize(
    "more", [{}, {"arguments": {"topic": 1}}, {"arguments": {"topic": "a", "tone": "hot"}}, {"arguments": {"x": 1}}]
)
async def test_arguments_that_do_not_fit_the_inputs_are_refused_and_nobody_is_asked(
    desk: Desk, more: dict[str, Any]
) -> None:
    boss = agent(asks("scribe", **more), says("Sorry."), tools=["scribe"])
    scene = Scene(desk, boss=boss, scribe=agent(says("Written."), inputs=INPUTS))
    await scene.play()
    [answer] = await scene.results()
    assert answer["details"] == {"error": "InvalidArguments"}
    assert await scene.others() == []


async def test_several_agents_are_asked_side_by_side_and_one_twice_in_one_turn(desk: Desk, sandbox: Sandbox) -> None:
    """Each waits for the other's file, so one after the other they would wait for ever."""
    both = "touch $$.here; while [ $(ls *.here | wc -l) -lt 2 ]; do sleep 0.01; done"
    scene = Scene(
        desk,
        sandbox,
        boss=agent(asks("scribe", "scribe"), says("Thanks."), tools=["scribe"]),
        scribe=agent(uses(("shell", {"command": both})), says("Written."), tools=["shell"]),
    )
    await scene.play()
    assert [text_of(answer) for answer in await scene.results()] == ["Written.", "Written."]
    assert [[message["role"] for message in each] for each in await scene.others()] == [
        ["user", "assistant", "toolResult", "assistant"]
    ] * 2


async def test_a_failure_is_an_error_result_with_its_code_and_the_last_that_was_said(desk: Desk) -> None:
    scene = Scene(
        desk,
        boss=agent(asks("scribe", tokens=1), says("Then not."), tools=["scribe"]),
        scribe=agent(
            {**uses(("shell", {"command": "true"}), tokens=5), "text": "Let me see."},
            {"error": {"message": "the model is away", "code": "F-DEP"}},
        ),
    )
    result = await scene.play()
    assert result.failure is None
    [answer] = await scene.results()
    assert answer["isError"]
    failure = "The agent `scribe` failed: F-DEP ModelFailed: the model is away"
    assert text_of(answer) == f"{failure}\n\nThe last that it said:\nLet me see."
    assert (answer["details"]["error"], answer["details"]["code"]) == ("ModelFailed", "F-DEP")
    assert answer["usage"]["totalTokens"] == 5


async def test_an_agent_whose_tools_cannot_be_had_fails_the_call_alone(desk: Desk, sandbox: Sandbox) -> None:
    broken = [{"mcp": {"name": "m", "command": ["no-such-program"]}}]
    scribe = {**agent(says("Written.")), "tools": broken}
    scene = Scene(desk, sandbox, boss=agent(asks("scribe"), says("Then not."), tools=["scribe"]), scribe=scribe)
    result = await scene.play()
    assert result.failure is None
    [answer] = await scene.results()
    assert text_of(answer).startswith("The agent `scribe` failed: F-DEP the MCP server `m` cannot be used")


async def test_agents_that_ask_for_ever_end_at_the_depth_that_is_allowed(desk: Desk) -> None:
    scene = Scene(desk, boss=agent(asks("boss"), says("Enough."), tools=["boss"]))
    result = await scene.play()
    assert result.outputs["text"] == "Enough."
    sessions = await scene.sessions()
    assert len(sessions) == 1 + MAX_DEPTH
    refused = [
        message
        for session in sessions.values()
        for message in messages(session)
        if message["role"] == "toolResult" and message["isError"]
    ]
    assert [message["details"] for message in refused] == [{"error": "DepthLimit"}]
    assert "may ask no further one" in text_of(refused[0])
    depths = [session.entries[0].body.get("data", {}).get("depth", 0) for session in sessions.values()]
    assert sorted(depths) == [0, 1, 2, 3]


async def test_the_gate_before_tool_calls_holds_for_asked_agents_too(desk: Desk) -> None:
    seen: list[str] = []

    async def gate(call: GatedCall) -> Block | None:
        seen.append(call.call.name)
        return Block("no shell today") if call.call.name == "shell" else None

    scene = Scene(
        desk,
        boss=agent(asks("scribe"), says("Thanks."), tools=["scribe"]),
        scribe=agent(uses(("shell", {"command": "touch here"})), says("I may not."), tools=["shell"]),
    )
    await scene.play(gate=gate)
    assert seen == ["scribe", "shell"]
    [[*_, refused, _]] = await scene.others()
    assert text_of(refused) == "no shell today"


async def test_an_asked_agent_has_its_own_tools_and_instructions_and_not_its_callers(desk: Desk) -> None:
    scene = Scene(
        desk,
        boss=agent(asks("scribe"), says("Thanks."), tools=["scribe", "shell"]),
        scribe=agent(uses(("shell", {"command": "touch here"})), says("I cannot.")),
    )
    await scene.play()
    [[*_, refused, _]] = await scene.others()
    assert text_of(refused) == "Tool shell not found. The tools are: none."


async def test_cancelling_the_caller_cancels_whom_it_asked_and_each_call_has_a_result(
    desk: Desk, sandbox: Sandbox
) -> None:
    asked = asyncio.Event()

    async def gate(call: GatedCall) -> None:
        if call.call.name == "shell":
            asked.set()

    scene = Scene(
        desk,
        sandbox,
        boss=agent(asks("scribe"), says("Thanks."), tools=["scribe"]),
        scribe=agent(uses(("shell", {"command": "sleep 600"})), says("Written."), tools=["shell"]),
    )
    task = asyncio.create_task(scene.play(gate=gate))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [child] = await scene.others()
    assert [message["role"] for message in child] == ["user", "assistant", "toolResult"]
    assert child[-1]["details"]["error"] == "Aborted"
    [answer] = await scene.results()
    assert answer["details"]["error"] == "Aborted"


async def test_the_next_attempt_asks_anew(desk: Desk) -> None:
    scene = Scene(desk, boss=agent(asks("scribe"), says("Thanks."), tools=["scribe"]), scribe=agent(says("Written.")))
    for number in (1, 2):
        assert (await scene.play(attempt=number)).failure is None
    assert [len(each) for each in await scene.others()] == [2, 2]
