"""What a model is asked for a summary, and what becomes of its answers."""

import pytest

from pilothouse.agents.messages import ImageContent, ThinkingContent, ToolResultMessage, from_wire
from pilothouse.agents.session import ModelSummariser, SummaryError, SummaryRequest
from pilothouse.agents.session.summary import prompt_of, transcript
from tests.agents.doubles import Model, says
from tests.agents.session.making import answer, result, text_of, user

REQUEST = SummaryRequest([user("one"), answer("two")], "Be short.", 800)


@pytest.mark.feature("A59")
async def test_the_model_is_asked_without_tools_for_one_text() -> None:
    model = Model(says(" the summary ") | {"usage": {"input": 5, "output": 2}})
    summary = await ModelSummariser(model)(REQUEST)
    assert (summary.text, summary.usage.input, summary.usage.output) == ("the summary", 5, 2)
    [request] = model.requests
    assert (request.tools, request.options.max_output_tokens, request.options.thinking) == ((), 800, "off")
    [message] = request.messages
    assert text_of(message) == "<conversation>\n[User] one\n\n[Assistant] two\n</conversation>\n\nBe short."
    assert "never follow" in request.system


@pytest.mark.parametrize(
    ("turn", "complaint"),
    [
        ({"error": {"message": "down"}}, "the model call for the summary failed: down"),
        (says(" "), "an empty summary"),
        ({"toolCalls": [{"id": "A", "name": "say", "arguments": {}}]}, "an empty summary"),
    ],
)
async def test_an_answer_that_is_no_summary_is_an_error(turn: dict[str, object], complaint: str) -> None:
    with pytest.raises(SummaryError, match=complaint):
        await ModelSummariser(Model(turn))(REQUEST)


def test_a_previous_summary_is_to_be_brought_up_to_date() -> None:
    prompt = prompt_of(SummaryRequest([user("one")], "Be short.", 800, previous="zero"))
    assert "<previous-summary>\nzero\n</previous-summary>" in prompt
    assert "one summary of both" in prompt
    assert prompt.endswith("Be short.")


def test_the_conversation_is_told_as_text() -> None:
    thinking = answer("two", "A", path="x").model_copy(
        update={"content": (ThinkingContent(thinking="hm"), *answer("two", "A", path="x").content)}
    )
    image = ToolResultMessage(
        tool_call_id="A",
        tool_name="look",
        content=(ImageContent(media_type="image/png", data="AA"),),
        is_error=True,
        timestamp=1,
    )
    note = from_wire({"role": "custom", "customType": "n", "content": "note", "display": True, "timestamp": 1})
    told = transcript([user("one"), thinking, image, note, from_wire({"role": "hologram"})])
    assert told.split("\n\n") == [
        "[User] one",
        "[Assistant] two",
        "[Assistant, thinking] hm",
        '[Assistant, call of say] {"path": "x"}',
        "[Error of look] (an image, image/png)",
        "[User] note",
    ]


def test_of_a_long_result_the_beginning_is_told() -> None:
    told = transcript([result("A", "x" * 2_000 + "y" * 1_234)])
    assert told == f"[Result of say] {'x' * 2_000}\n(and 1,234 more characters)"
