"""A stream that breaks after pieces of it were announced: what is kept, what is shown, and what is asked anew."""

from collections.abc import Sequence

from pilothouse.agents.context import Context
from pilothouse.agents.events import AgentEvent, MessageEnd, MessageStart, MessageUpdate
from pilothouse.agents.loop import LoopConfig, run_loop
from pilothouse.agents.messages import AssistantMessage, Message, UserMessage
from pilothouse.models.provider import ModelProvider
from pilothouse.tools.registry import ToolRegistry
from tests.agents.doubles import Notes
from tests.models.dialects import Dialect
from tests.models.wire import Reply, raw_server


async def test_a_broken_answer_is_kept_as_failed_and_the_next_call_is_the_same_as_the_first(dialect: Dialect) -> None:
    broken = Reply([dialect.beginning + dialect.said("half an ans")], cut=True)
    async with raw_server(broken, Reply([dialect.answer("whole")])) as server:
        provider = dialect.provider(server.url)
        question = UserMessage.of("hi", timestamp=1)
        failed, announced = await turn(provider, [question])
        whole, _ = await turn(provider, [question, *failed])
    updates = ["update ", "update half an ans", "update half an ans"]  # the text's start, its delta and its end
    assert announced == ["start ", *updates, "end half an ans"]
    assert [(message.text, message.stop_reason) for message in answers(failed)] == [("half an ans", "error")]
    assert [(message.text, message.stop_reason) for message in answers(whole)] == [("whole", "stop")]
    assert server.seen[0].body == server.seen[1].body


def answers(messages: Sequence[Message]) -> list[AssistantMessage]:
    return [message for message in messages if isinstance(message, AssistantMessage)]


async def turn(provider: ModelProvider, history: Sequence[Message]) -> tuple[Sequence[Message], list[str]]:
    """One turn of the loop: what it added, and what it announced of the answer."""
    announced: list[str] = []

    async def listen(event: AgentEvent) -> None:
        if isinstance(event, MessageStart | MessageUpdate | MessageEnd) and isinstance(event.message, AssistantMessage):
            announced.append(f"{event.type.removeprefix('message_')} {event.message.text}")

    context = Context("", history, ToolRegistry())
    return await run_loop(context, LoopConfig(provider, Notes()), listen), announced
