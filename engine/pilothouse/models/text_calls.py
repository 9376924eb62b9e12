"""Tool calls of a model whose server has no form for them: told how in the system prompt, it writes them as text."""

import html
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import groupby

from pilothouse.agents.messages import (
    AssistantMessage,
    Message,
    TextContent,
    ThinkingContent,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from pilothouse.models.builder import MessageBuilder, Origin
from pilothouse.models.provider import Done, ModelEvent, ModelProvider, ModelRequest, TextDelta, ToolSpec
from pilothouse.models.written_calls import CLOSE, OPEN, RESPONSE, read_calls

_HOW = f"""\
# Tools

You can call tools. To call one, write this and nothing after it, with the tool's own name and arguments:

{OPEN}
{{"name": "a_tool", "arguments": {{"an_argument": "a value"}}}}
{CLOSE}

Several such blocks are several calls. Their results are in the next message; never write a result yourself.

The tools, each with the JSON schema of its arguments:
"""


class TextCalls:
    """Nothing but `model` differs for whoever asks: calls are calls, and results are results. What the model says is
    told at its end, when it is known what of it is a call. A `response_schema` would forbid calls, so beside tools the
    system prompt alone speaks for it."""

    def __init__(self, model: ModelProvider) -> None:
        self.api = model.api
        self.provider = model.provider
        self.model = model.model
        self._model = model

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        async with aclosing(self._model.stream(_in_text(request))) as events:
            async for event in events:
                if not request.tools:
                    yield event
                elif isinstance(event, Done):
                    for told in _told(event.message, request):
                        yield told
                elif not isinstance(event, TextDelta):
                    yield event


def _in_text(request: ModelRequest) -> ModelRequest:
    messages = list(_merged(map(_written, request.messages)))
    if not request.tools:
        return replace(request, messages=messages)
    system = f"{request.system}\n\n{_described(request.tools)}".lstrip()
    return replace(request, system=system, messages=messages, tools=(), response_schema=None)


def _described(tools: Sequence[ToolSpec]) -> str:
    listed = [{"name": tool.name, "description": tool.description, "parameters": tool.parameters} for tool in tools]
    return "\n".join([_HOW, *(json.dumps(tool, ensure_ascii=False) for tool in listed)])


def _written(message: Message) -> Message:
    if isinstance(message, ToolResultMessage):
        return _result(message)
    if isinstance(message, AssistantMessage):
        content = tuple(_call(block) if isinstance(block, ToolCall) else block for block in message.content)
        return message.model_copy(update={"content": content})
    return message


def _call(call: ToolCall) -> TextContent:
    body = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    return TextContent(text=f"\n{OPEN}\n{body if call.arguments_text is None else call.arguments_text}\n{CLOSE}\n")


def _result(result: ToolResultMessage) -> UserMessage:
    """A tool's text cannot end its block, and so cannot speak in the user's name."""
    failed = ' error="true"' if result.is_error else ""
    text = result.text.replace(f"</{RESPONSE}", f"<\\/{RESPONSE}")
    block = f'<{RESPONSE} name="{html.escape(result.tool_name)}"{failed}>\n{text}\n</{RESPONSE}>'
    images = [image for image in result.content if not isinstance(image, TextContent)]
    return UserMessage(content=(TextContent(text=block), *images), timestamp=result.timestamp)


def _merged(messages: Iterable[Message]) -> Iterator[Message]:
    """Messages of the user that follow each other as one: many models know nothing else than taking turns."""
    for is_user, group in groupby(messages, lambda message: isinstance(message, UserMessage)):
        if not is_user:
            yield from group
            continue
        users = [message for message in group if isinstance(message, UserMessage)]
        yield users[0].model_copy(update={"content": tuple(block for user in users for block in user.content)})


def _told(message: AssistantMessage, request: ModelRequest) -> Iterator[ModelEvent]:
    """The answer again, with the calls that its text holds."""
    origin = Origin(message.api, message.provider, message.model)
    builder = MessageBuilder(origin, request, clock=lambda: message.timestamp)
    builder.usage = message.usage
    names = frozenset(tool.name for tool in request.tools)
    for block in message.content:
        if isinstance(block, TextContent):
            yield from _text(block.text, names, builder)
        else:
            _keep(block, builder)
    if message.stop_reason == "length":
        yield builder.done("length")
    else:
        yield builder.done("toolUse" if builder.calls else "stop")


def _text(text: str, names: frozenset[str], builder: MessageBuilder) -> Iterator[ModelEvent]:
    said, calls = read_calls(text, names)
    if said:
        yield builder.text(said)
    for call in calls:
        start = builder.toolcall_start("", call.name)
        yield start
        yield builder.toolcall_delta(start.content_index, call.arguments)
        yield from builder.toolcall_ends()


def _keep(block: ThinkingContent | ToolCall, builder: MessageBuilder) -> None:
    """It was told as it came. A server may find calls in a text by itself."""
    if isinstance(block, ToolCall):
        start = builder.toolcall_start(block.id, block.name)
        text = json.dumps(block.arguments) if block.arguments_text is None else block.arguments_text
        builder.toolcall_delta(start.content_index, text)
        builder.toolcall_ends()
    elif block.redacted:
        builder.redacted(block.thinking_signature or "")
    else:
        builder.thinking(block.thinking)
        if block.thinking_signature is not None:
            builder.sign(block.thinking_signature)
        builder.seal()
