"""What a task gives back, and every way in which it ends."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from pilothouse.agents.bounds import Limits
from pilothouse.agents.events import AgentEvent
from pilothouse.agents.session import CompactionSettings
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.models.provider import Done, ModelEvent, ModelRequest
from pilothouse.records.events import EventType
from pilothouse.records.failures import OUTCOME_UNKNOWN, Failed, FailureCode
from pilothouse.tools.schema import SchemaRefused
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.desk import STEP, Desk
from tests.agents.doubles import ATool, InOrder, Model, calls, registry, says

OUTPUTS = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}


def say(call: str, text: str = "a") -> tuple[str, str, Mapping[str, Any]]:
    return (call, "say", {"text": text})


async def run(desk: Desk, model: Model, *tools: ATool, **task: Any) -> AgentResult:
    asked = AgentTask(desk.session, "Write.", step=STEP, **task)
    return await run_agent(asked, await desk.attempt(), model, registry(*tools))


def reason(result: AgentResult) -> str:
    return f"{result.failure.code} {result.failure.reason}" if result.failure else "none"


@pytest.mark.feature("B11")
@pytest.mark.feature("A1")
async def test_the_outputs_are_text_usage_turns_and_session(desk: Desk) -> None:
    spent = {"usage": {"input": 10, "output": 5, "totalTokens": 15}}
    model = Model(calls(say("A")) | spent, says("Done.") | spent)
    result = await run(desk, model)
    assert result.failure is None
    usage = result.outputs["usage"]
    assert isinstance(usage, dict)
    assert {name: usage[name] for name in ("input", "output", "totalTokens")} == {
        "input": 20,
        "output": 10,
        "totalTokens": 30,
    }
    rest = {name: value for name, value in result.outputs.items() if name != "usage"}
    assert rest == {"text": "Done.", "turns": 2, "session": str(desk.session)}


@pytest.mark.feature("A2")
async def test_the_first_message_is_the_question_and_then_the_arguments(desk: Desk) -> None:
    model = Model(says("ok"))
    await run(desk, model, arguments={"z": [1], "a": "ü"}, instructions="Be short.", description="A writer.")
    [request] = model.requests
    [prompt] = request.messages
    text = 'Write.\n\n## Arguments\n\n```json\n{\n  "z": [\n    1\n  ],\n  "a": "ü"\n}\n```'
    assert prompt.model_dump()["content"] == ({"type": "text", "text": text},)
    assert request.system == "A writer.\n\nBe short."


async def test_the_run_hears_of_turns_and_tools(desk: Desk) -> None:
    await run(desk, Model(calls(say("A")), says("ok")))
    told = [(event.type, event.step, event.data.get("call")) for event in await desk.events()][1:]
    assert told == [
        (EventType.TURN_RECORDED, STEP, None),
        (EventType.TOOL_STARTED, STEP, "A"),
        (EventType.TOOL_FINISHED, STEP, "A"),
        (EventType.TURN_RECORDED, STEP, None),
    ]


@pytest.mark.parametrize("text", ['{"title": "T"}', 'Here:\n```json\n{"title": "T"}\n```\nBye.', ' {"title":"T"}\n'])
async def test_an_answer_that_satisfies_the_schema_is_the_data(desk: Desk, text: str) -> None:
    model = Model(says(text))
    result = await run(desk, model, output_schema=OUTPUTS)
    assert result.outputs["data"] == {"title": "T"}
    assert model.requests[0].response_schema == OUTPUTS
    assert '"title"' in model.requests[0].system


async def test_an_answer_that_does_not_is_asked_again_with_what_was_wrong(desk: Desk) -> None:
    model = Model(says("No."), says('{"title": 3}'), says('{"title": "T"}'))
    result = await run(desk, model, output_schema=OUTPUTS)
    assert (result.failure, result.outputs["data"]) == (None, {"title": "T"})
    asked = [request.messages[-1].model_dump()["content"][0]["text"] for request in model.requests[1:]]
    assert "not JSON" in asked[0]
    assert 'answer.title: 3 is not of type "string"' in asked[1]


async def test_three_wrong_answers_are_a_failure_of_validation(desk: Desk) -> None:
    model = Model(*[says("```json\n{}\n```")] * 4)
    result = await run(desk, model, output_schema=OUTPUTS)
    assert (reason(result), model.calls) == ("F-VAL OutputInvalid", 3)
    assert '"title" is a required property' in str(result.failure)
    assert "data" not in result.outputs


async def test_an_outputs_schema_that_is_none_is_refused_before_the_model_is_asked(desk: Desk) -> None:
    model = Model(says("x"))
    with pytest.raises(SchemaRefused, match="objekt"):
        await run(desk, model, output_schema={"type": "objekt"})
    assert model.calls == 0


async def test_a_model_failure_is_the_failure_of_the_task(desk: Desk) -> None:
    result = await run(desk, Model({"error": {"message": "no such model", "code": "F-INP"}}))
    assert (reason(result), str(result.failure)) == ("F-INP ModelFailed", "F-INP ModelFailed: no such model")


@pytest.mark.parametrize("mode", ["parallel", "sequential"])
async def test_a_tool_that_fails_the_task_leaves_its_call_open_and_the_results_beside_it_recorded(
    desk: Desk, mode: Any
) -> None:
    lost, ended = asyncio.Event(), []

    async def work(call: ToolInvocation) -> ToolResult:
        if call.id == "B":
            lost.set()
            raise Failed(FailureCode.UNK, "nobody knows", OUTCOME_UNKNOWN)
        if mode == "parallel":
            await lost.wait()
        ended.append(call.id)
        return ToolResult.of("done")

    model = Model(calls(say("A"), say("B"), say("C", "c")), says("never"))
    result = await run(desk, model, ATool(work=work, execution_mode=mode))
    assert (reason(result), model.calls) == ("F-UNK OutcomeUnknown", 1)
    turn = next(entry for entry in (await desk.stored()).entries if "assistant" in str(entry.body)).id
    reader = await desk.attempt()
    await reader.open_session(desk.session)
    rows = await reader.tool_calls(desk.session, turn)
    assert sorted(ended) == (["A", "C"] if mode == "parallel" else ["A"])
    assert [(row.call, row.result is not None) for row in rows] == [("A", True), ("B", False), ("C", True)][: len(rows)]


def looping(turns: int) -> Model:
    """Asks for another call in each turn, and says so."""
    return Model(*[calls(say(f"C{turn}", str(turn)), text=f"turn {turn}") for turn in range(turns)], says("Done."))


@pytest.mark.feature("B16")
async def test_at_the_turn_limit_the_last_text_is_kept(desk: Desk) -> None:
    model, tool = looping(9), ATool()
    result = await run(desk, model, tool, limits=Limits(turns=3))
    assert (reason(result), model.calls, len(tool.calls)) == ("F-RES TurnLimit", 3, 3)
    assert (result.outputs["text"], result.outputs["turns"]) == ("turn 2", 3)


async def test_an_answer_in_the_last_turn_is_an_answer(desk: Desk) -> None:
    result = await run(desk, looping(2), limits=Limits(turns=3))
    assert (result.failure, result.outputs["text"]) == (None, "Done.")


async def test_calls_over_the_budget_are_blocked_and_end_the_task(desk: Desk) -> None:
    tool = ATool()
    model = Model(calls(say("A"), say("B", "b")), calls(say("C"), say("D", "d")), says("never"))
    result = await run(desk, model, tool, limits=Limits(tool_calls=3))
    assert (reason(result), tool.calls, model.calls) == ("F-RES ToolCallLimit", ["A", "B", "C"], 2)


async def test_a_task_that_uses_its_last_call_may_answer(desk: Desk) -> None:
    result = await run(desk, looping(2), limits=Limits(tool_calls=2))
    assert (result.failure, result.outputs["text"]) == (None, "Done.")


async def test_tokens_over_the_budget_end_the_task(desk: Desk) -> None:
    spent = {"usage": {"totalTokens": 60}}
    model = Model(calls(say("A")) | spent, calls(say("B", "b")) | spent, says("never"))
    result = await run(desk, model, limits=Limits(tokens=100))
    assert (reason(result), model.calls) == ("F-RES TokenLimit", 2)


async def test_time_over_the_budget_aborts_the_tool_and_ends_the_task(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    late = loop.time() + 601

    async def hang(call: ToolInvocation) -> ToolResult:
        monkeypatch.setattr(loop, "time", lambda: late)
        await asyncio.Event().wait()
        raise AssertionError("never")

    result = await run(desk, looping(1), ATool(work=hang), limits=Limits(duration=600))
    assert reason(result) == "F-TMO TimeLimit"
    last = (await desk.stored()).entries[-1].body["message"]
    assert (last["role"], last["isError"]) == ("toolResult", True)


async def test_a_timeout_of_a_tool_itself_is_not_the_time_limit(desk: Desk) -> None:
    async def late(call: ToolInvocation) -> ToolResult:
        raise TimeoutError("the other side is slow")

    result = await run(desk, looping(1), ATool(work=late), limits=Limits(duration=60))
    assert (result.failure, result.outputs["text"]) == (None, "Done.")


async def test_the_same_call_again_and_again_ends_the_task_before_the_last_one_runs(desk: Desk) -> None:
    tool = ATool()
    model = Model(*[calls(say(f"C{turn}")) for turn in range(9)])
    result = await run(desk, model, tool)
    assert (reason(result), tool.calls, model.calls) == ("F-EXE LoopDetected", ["C0", "C1"], 3)


async def test_calls_that_differ_are_no_loop(desk: Desk) -> None:
    turns = [calls(say(f"C{turn}", "ab"[turn % 2])) for turn in range(8)]
    result = await run(desk, Model(*turns, says("Done.")))
    assert result.failure is None


async def test_turns_in_which_no_call_can_be_made_end_the_task(desk: Desk) -> None:
    model = Model(*[calls((f"C{turn}", "nope", {"n": turn})) for turn in range(9)])
    result = await run(desk, model)
    assert (reason(result), model.calls) == ("F-EXE ErrorLimit", 3)


@pytest.mark.parametrize("number", ["9" * 30, "1e400", "NaN"])
async def test_numbers_that_no_store_takes_are_answered_and_the_task_goes_on(desk: Desk, number: str) -> None:
    bad = {"toolCalls": [{"id": "A", "name": "say", "argumentsText": '{"text": ' + number + "}"}]}
    result = await run(desk, Model(bad, says("Done.")))
    assert (result.failure, result.outputs["text"]) == (None, "Done.")


async def test_several_bad_calls_in_one_turn_count_once(desk: Desk) -> None:
    bad = [calls(*[(f"C{turn}{n}", "nope", {"n": [turn, n]}) for n in range(3)]) for turn in range(2)]
    result = await run(desk, Model(*bad, says("Done.")))
    assert (result.failure, result.outputs["text"]) == (None, "Done.")


async def test_a_timeout_of_a_subscriber_is_the_subscribers_error(desk: Desk) -> None:
    async def late(event: AgentEvent) -> None:
        raise TimeoutError("nobody listens")

    task = AgentTask(desk.session, "Write.", limits=Limits(duration=60))
    with pytest.raises(TimeoutError, match="nobody listens"):
        await run_agent(task, await desk.attempt(), Model(says("x")), registry(), late)


async def test_tools_that_answer_with_errors_do_not_end_the_task(desk: Desk) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult.of("[exit code 1]", {"exitCode": 1}, is_error=True)

    result = await run(desk, looping(6), ATool(work=work))
    assert (result.failure, result.outputs["text"]) == (None, "Done.")


async def test_one_good_call_begins_the_count_of_errors_anew(desk: Desk) -> None:
    bad = [calls((f"X{turn}", "nope", {"n": turn})) for turn in range(4)]
    model = Model(bad[0], bad[1], calls(say("A")), bad[2], bad[3], says("Done."))
    result = await run(desk, model)
    assert result.failure is None


class CutOff(Model):
    """Its answers end at the limit of output tokens."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        async for event in super().stream(request):
            yield Done(event.message.model_copy(update={"stop_reason": "length"})) if isinstance(event, Done) else event


async def test_an_answer_that_was_cut_off_is_no_success(desk: Desk) -> None:
    result = await run(desk, CutOff(says("The transfer was NOT")))
    assert reason(result) == "F-RES AnswerTruncated"
    assert result.outputs["text"] == "The transfer was NOT"


LONG = "word " * 400


@pytest.mark.feature("A48")
async def test_a_conversation_that_grows_too_long_is_compacted_and_the_summary_counts(desk: Desk) -> None:
    spent = {"usage": {"input": 10, "output": 5, "totalTokens": 15}}
    script = [calls(say("A")) | spent, says("a summary") | spent, says("done") | spent]
    settings = CompactionSettings(window=600, reserve=100, keep_recent=100)

    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult.of(LONG)

    model = InOrder(*script)
    result = await run(desk, model, ATool(work=work), compaction=settings)
    assert (result.failure, result.outputs["text"], result.outputs["turns"]) == (None, "done", 2)
    usage = result.outputs["usage"]
    assert isinstance(usage, dict)
    assert usage["totalTokens"] == 45
    types = [entry.type for entry in (await desk.stored()).entries]
    assert types == ["message", "message", "message", "compaction", "message"]
    again = await run(desk, model, ATool(work=work), compaction=settings)
    assert again.outputs == result.outputs
