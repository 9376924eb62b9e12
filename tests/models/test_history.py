"""What of a conversation goes to a model, in each of the formats."""

import json
import re
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.agents.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    from_wire,
    to_wire,
)
from pilothouse.models.builder import Origin
from pilothouse.models.history import call_id
from pilothouse.models.provider import ModelRequest
from pilothouse.models.wire import Target
from tests.models.dialects import DIALECTS, Dialect
from tests.models.talk import assistant, result, sent

SIGNATURES = {
    "openai-completions": "reasoning_content",
    "openai-responses": '{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "SECRET"}',
    "anthropic-messages": "SECRET",
}


@given(st.text(max_size=80), st.text(max_size=80))
def test_an_id_becomes_one_that_every_server_takes_and_no_two_become_one(one: str, other: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,40}", call_id(one))
    assert (call_id(one) == call_id(other)) == (one == other)


async def test_a_call_and_its_result_keep_together_whatever_their_id(dialect: Dialect) -> None:
    """Ids of another server, as a conversation that changes its model holds them."""
    for written in ("functions.read:0", "call_a|fc_b", "é" * 100):
        history: list[Message] = [assistant(dialect, ToolCall(id=written, name="t")), result(written)]
        body = json.dumps(await sent(dialect, ModelRequest("", history)))
        assert body.count(call_id(written)) == 2


@pytest.mark.parametrize("change", ["model", "provider", "api"])
async def test_thinking_goes_to_no_other_model(dialect: Dialect, change: str) -> None:
    thinking = ThinkingContent(thinking="hm", thinking_signature=SIGNATURES[dialect.wire.api])
    own = assistant(dialect, thinking, TextContent(text="42"))
    other = own.model_copy(update={change: "another"})
    for message, present in ((own, True), (other, False)):
        body = json.dumps(await sent(dialect, ModelRequest("", [message])))
        assert ("SECRET" in body or '"hm"' in body) == present


@pytest.mark.feature("A6")
@pytest.mark.feature("A24")
async def test_roles_that_are_not_known_stay_at_home(dialect: Dialect) -> None:
    note = from_wire({"role": "bashExecution", "command": "whoami"})
    body = await sent(dialect, ModelRequest("", [note]))
    assert body["input" if "input" in body else "messages"] == []


async def test_what_had_come_of_a_failed_answer_goes_to_no_model(dialect: Dialect) -> None:
    for stop in ("error", "aborted"):
        half = assistant(dialect, TextContent(text="half"), stop=stop)
        assert "half" not in json.dumps(await sent(dialect, ModelRequest("", [half])))


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
blocks = st.lists(
    st.one_of(
        st.builds(TextContent, text=texts),
        st.builds(ThinkingContent, thinking=texts, thinking_signature=st.just("reasoning")),
        st.builds(ToolCall, id=texts, name=texts, arguments=st.dictionaries(texts, texts | st.integers(-9, 9))),
    ),
    max_size=5,
).map(tuple)


@pytest.mark.feature("A3")
@pytest.mark.feature("A4")
@given(content=blocks, spoken=st.sampled_from(DIALECTS))
def test_a_stored_answer_makes_the_same_request_as_the_answer_itself(content: Any, spoken: Dialect) -> None:
    """So a process that resumes a conversation sends what the first one would have sent, byte for byte."""
    signed = tuple(_signed(block, spoken) for block in content)
    fresh = assistant(spoken, *signed)
    stored = from_wire(json.loads(json.dumps(to_wire(fresh))))
    assert isinstance(stored, AssistantMessage)
    assert _encoded(fresh, spoken) == _encoded(stored, spoken)


def _signed(block: Any, spoken: Dialect) -> Any:
    if not isinstance(block, ThinkingContent):
        return block
    return block.model_copy(update={"thinking_signature": SIGNATURES[spoken.wire.api]})


def _encoded(message: AssistantMessage, spoken: Dialect) -> str:
    origin = Origin(message.api, message.provider, message.model)
    return json.dumps(spoken.wire.encode(ModelRequest("", [message]), Target(origin, httpx.URL("http://models"))))
