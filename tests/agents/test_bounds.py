"""What ends a task that costs too much, says nothing or goes in circles; and the question whether it is done."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from pilothouse.agents.bounds import Limits
from pilothouse.agents.confirmation import GO_ON, QUESTION
from pilothouse.agents.progress import SILENT
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.store.ports import AttemptStore
from tests.agents.desk import STEP, Desk, Desks, DyingStore, Killed
from tests.agents.doubles import ATool, Model, calls, registry, says

TWICE = Limits(double_confirmation=True)
NOTHING = says("")
FAR = 1_000
"""A write that never comes."""


async def run(desk: Desk, model: Model, store: AttemptStore | None = None, **task: Any) -> AgentResult:
    asked = AgentTask(desk.session, "Write.", step=STEP, **task)
    return await run_agent(asked, store or await desk.attempt(), model, registry(ATool(idempotent=True)))


def end(result: AgentResult) -> tuple[str, Any]:
    failure = result.failure
    return f"{failure.code} {failure.reason}" if failure else "done", result.outputs["text"]


def call(number: int, **arguments: Any) -> dict[str, Any]:
    return calls((f"C{number}", "say", {"text": str(number), **arguments}), text=f"turn {number}")


def costing(turn: Mapping[str, Any], dollars: float) -> dict[str, Any]:
    return {**turn, "usage": {"totalTokens": 1, "cost": {"total": dollars}}}


def told(model: Model) -> list[str]:
    """The text of the last message of each request but the first, where it is a user's."""
    last = [request.messages[-1] for request in model.requests[1:]]
    return [message.model_dump()["content"][0]["text"] for message in last if message.role == "user"]


@pytest.mark.feature("B86")
async def test_the_cost_over_the_budget_ends_the_task_and_is_told(desk: Desk) -> None:
    model = Model(costing(call(0), 0.3), costing(call(1), 0.3), costing(call(2), 0.3), says("never"))
    result = await run(desk, model, limits=Limits(cost=Decimal("0.5")))
    assert end(result) == ("F-RES CostLimit", "turn 1")
    assert "the budget of 0.5 US dollars is used up" in str(result.failure)
    usage = result.outputs["usage"]
    assert isinstance(usage, dict)
    assert usage["cost"] == {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0.6}


@pytest.mark.parametrize(("one", "two", "limit"), [(0.25, 0.25, "0.5"), (0.7, 0.1, "0.8")])
async def test_a_cost_is_reached_to_the_last_digit(desk: Desk, one: float, two: float, limit: str) -> None:
    """As floats, 0.7 and 0.1 are less than 0.8."""
    model = Model(costing(call(0), one), costing(call(1), two), says("never"))
    assert end(await run(desk, model, limits=Limits(cost=Decimal(limit)))) == ("F-RES CostLimit", "turn 1")


async def test_an_answer_that_is_there_counts_whatever_it_cost(desk: Desk) -> None:
    model = Model(costing(call(0), 0.1), costing(says("Done."), 9.0))
    assert end(await run(desk, model, limits=Limits(cost=Decimal("0.5")))) == ("done", "Done.")


async def test_a_model_that_says_nothing_is_reminded(desk: Desk) -> None:
    model = Model(call(0), says(" \n"), NOTHING, says("Done."))
    assert end(await run(desk, model)) == ("done", "Done.")
    assert told(model) == [SILENT, SILENT]


@pytest.mark.feature("B86")
@pytest.mark.parametrize("schema", [None, {"type": "object"}], ids=["text", "schema"])
async def test_a_model_that_goes_on_saying_nothing_ends_the_task(desk: Desk, schema: Any) -> None:
    model = Model(call(0), *[NOTHING] * 9)
    assert end(await run(desk, model, output_schema=schema)) == ("F-EXE EmptyResponse", "turn 0")
    assert model.calls == 4


async def test_only_empty_responses_in_a_row_count(desk: Desk) -> None:
    model = Model(NOTHING, call(0), NOTHING, says("{"), NOTHING, says("{}"))
    result = await run(desk, model, output_schema={"type": "object"}, limits=Limits(empty_responses=2))
    assert (result.failure, result.outputs["data"]) == (None, {})


@pytest.mark.feature("B11")
async def test_the_order_of_arguments_makes_no_other_call(desk: Desk) -> None:
    turns = [{"text": "a", "more": {"x": 1, "y": 2}}, {"more": {"y": 2, "x": 1}, "text": "a"}]
    model = Model(*[calls((f"C{turn}", "nope", turns[turn % 2])) for turn in range(9)])
    assert end(await run(desk, model, limits=Limits(consecutive_errors=None)))[0] == "F-EXE LoopDetected"
    assert model.calls == 3


@pytest.mark.feature("B11")
async def test_another_call_between_two_that_are_the_same_begins_the_count_anew(desk: Desk) -> None:
    same = [calls((f"C{turn}", "say", {"text": "b" if turn == 2 else "a"})) for turn in range(5)]
    assert end(await run(desk, Model(*same, says("Done.")))) == ("done", "Done.")


async def test_one_call_of_several_that_differs_is_no_loop(desk: Desk) -> None:
    turns = [calls((f"A{turn}", "say", {"text": "a"}), (f"B{turn}", "say", {"text": str(turn)})) for turn in range(5)]
    assert end(await run(desk, Model(*turns, says("Done.")))) == ("done", "Done.")


@pytest.mark.feature("B11")
async def test_without_double_confirmation_nothing_is_asked(desk: Desk) -> None:
    model = Model(says("Done."))
    assert end(await run(desk, model)) == ("done", "Done.")
    assert model.calls == 1


@pytest.mark.feature("B11")
@pytest.mark.parametrize(
    ("said", "text", "asked"),
    [
        ([says("COMPLETED")], "The answer.", [QUESTION]),
        ([says(" COMPLETED: Better.")], "Better.", [QUESTION]),
        ([says("CONTINUE"), call(1), says("More."), says("COMPLETED.")], "More.", [QUESTION, GO_ON, QUESTION]),
        ([says("Hm."), says("COMPLETED")], "Hm.", [QUESTION, QUESTION]),
        ([call(1), says("COMPLETED it is."), says("COMPLETED")], "COMPLETED it is.", [QUESTION, QUESTION]),
        ([NOTHING, says("COMPLETED")], "The answer.", [QUESTION, QUESTION]),
        ([says("COMPLETEDLY."), says("COMPLETED")], "COMPLETEDLY.", [QUESTION, QUESTION]),
    ],
    ids=["yes", "yes and the answer", "no", "neither", "a call", "silence", "another word"],
)
async def test_an_answer_is_final_once_the_model_has_said_so(
    desk: Desk, said: list[dict[str, Any]], text: str, asked: list[str]
) -> None:
    model = Model(says("The answer."), *said, says("never"))
    assert end(await run(desk, model, limits=TWICE)) == ("done", text)
    assert told(model) == asked
    assert model.calls == 1 + len(said)


@pytest.mark.feature("B11")
async def test_only_what_follows_the_question_answers_it(desk: Desk) -> None:
    model = Model(NOTHING, says("COMPLETED lists are long."), says("COMPLETED"))
    assert end(await run(desk, model, limits=TWICE)) == ("done", "COMPLETED lists are long.")
    assert told(model) == [SILENT, QUESTION]


@pytest.mark.feature("B16")
async def test_an_answer_counts_where_no_turn_is_left_to_confirm_it(desk: Desk) -> None:
    model = Model(says("The answer."), says("never"))
    limits = Limits(turns=1, double_confirmation=True)
    assert end(await run(desk, model, limits=limits)) == ("done", "The answer.")
    assert model.calls == 1


@pytest.mark.feature("B16")
async def test_a_model_that_is_not_done_by_its_own_word_has_not_answered(desk: Desk) -> None:
    limits = Limits(turns=2, double_confirmation=True)
    result = await run(desk, Model(says("Half of it."), says("CONTINUE"), says("never")), limits=limits)
    assert end(result) == ("F-RES TurnLimit", "Half of it.")


@pytest.mark.feature("B11")
@pytest.mark.parametrize(
    ("script", "limits", "ended", "said"),
    [
        ([says("The answer."), says("COMPLETED")], TWICE, ("done", "The answer."), QUESTION),
        ([call(0), NOTHING, NOTHING], Limits(empty_responses=2), ("F-EXE EmptyResponse", "turn 0"), SILENT),
    ],
    ids=["question", "silence"],
)
async def test_a_process_that_dies_anywhere_leaves_what_was_said_and_counted(
    desks: Desks, script: list[dict[str, Any]], limits: Limits, ended: tuple[str, str], said: str
) -> None:
    """Nothing that the model was told is told again, at whatever write the process before died."""
    whole = DyingStore(await (first := await desks.new()).attempt(), FAR, after=True)
    assert end(await run(first, Model(*script), whole, limits=limits)) == ended
    for at in range(len(whole.writes)):
        desk, model = await desks.new(), Model(*script, says("never"))
        with pytest.raises(Killed):
            await run(desk, model, DyingStore(await desk.attempt(), at, after=True), limits=limits)
        assert end(await run(desk, model, limits=limits)) == ended
        assert [said in str(entry.body) for entry in (await desk.stored()).entries].count(True) == 1
