"""A conversation as every provider takes it: one result for each call, right after the answer that asked for it.

A session can hold something else: one that was imported, a branch that begins in the middle of a turn, an abort whose
last write the store did not take. Providers refuse such a conversation, and with it every later request.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence

from pilothouse.agents.convert import ModelMessage
from pilothouse.agents.messages import AssistantMessage, Message, TextContent, ToolCall, ToolResultMessage
from pilothouse.agents.turns import failed

INTERRUPTED = "Interrupted"
"""What `details.error` of a result says that was made up for a call without one."""

_UNANSWERED = "The call was interrupted: there is no result of it, and what it had done by then is done."


def repaired(messages: Iterable[ModelMessage]) -> list[ModelMessage]:
    """The conversation without answers that failed and without results that answer no call. A result that came late
    is moved up to its call; a call without one gets an error result that says so. The same input gives the same
    output, so a provider's cache of the conversation holds."""
    whole: list[ModelMessage] = []
    for answer, rest in _turns(messages):
        if answer is not None:
            whole.append(answer)
            whole += _results(answer, rest)
        whole += [message for message in rest if message.role != "toolResult"]
    return whole


def missing_results(messages: Sequence[Message]) -> list[ToolResultMessage]:
    """Results for the calls of the last answer that have none, for a conversation that ends in an open turn."""
    rest: list[ToolResultMessage] = []
    for message in reversed(messages):
        if isinstance(message, AssistantMessage):
            found = _results(message, tuple(reversed(rest)))
            return [] if failed(message) else [result for result in found if not any(result is one for one in rest)]
        if not isinstance(message, ToolResultMessage):
            return []
        rest.append(message)
    return []


def _turns(
    messages: Iterable[ModelMessage],
) -> Iterator[tuple[AssistantMessage | None, Sequence[ModelMessage]]]:
    """Each answer that did not fail, with what follows it up to the next; first what precedes them all."""
    answer: AssistantMessage | None = None
    rest: list[ModelMessage] = []
    for message in messages:
        if message.role != "assistant":
            rest.append(message)
        elif not failed(message):
            yield answer, rest
            answer, rest = message, []
    yield answer, rest


def _results(answer: AssistantMessage, rest: Sequence[ModelMessage]) -> list[ToolResultMessage]:
    """One result for each call, in the order of the calls."""
    calls = answer.tool_calls
    results = [message for message in rest if message.role == "toolResult"]
    if [call.id for call in calls] == [result.tool_call_id for result in results]:
        return results
    there: defaultdict[str, deque[ToolResultMessage]] = defaultdict(deque)
    for result in results:
        there[result.tool_call_id].append(result)
    return [there[call.id].popleft() if there[call.id] else _interrupted(call, answer.timestamp) for call in calls]


def _interrupted(call: ToolCall, timestamp: int) -> ToolResultMessage:
    return ToolResultMessage(
        tool_call_id=call.id,
        tool_name=call.name,
        content=(TextContent(text=_UNANSWERED),),
        details={"error": INTERRUPTED},
        is_error=True,
        timestamp=timestamp,
    )
