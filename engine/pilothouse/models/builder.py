"""Puts one assistant message together from deltas, and makes the events of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from pilothouse.agents.messages import (
    AssistantMessage,
    Message,
    StopReason,
    TextContent,
    ThinkingContent,
    ToolCall,
    Usage,
    now_ms,
)
from pilothouse.models.prices import Prices
from pilothouse.models.provider import (
    Done,
    Failed,
    ModelFailure,
    ModelRequest,
    Start,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who answers: the wire format, the service and the model, as the message records them."""

    api: str
    provider: str
    model: str


class MessageBuilder:
    """One answer under construction.

    Tool calls get ids that no call of the conversation has: a missing or repeated id is replaced by
    `call_<turn>_<ordinal>`, the same again when a restarted process asks for the same turn.
    """

    def __init__(
        self,
        origin: Origin,
        request: ModelRequest,
        prices: Prices | None = None,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self._origin = origin
        self._prices = prices
        self._turn = request.turn
        self._taken = _call_ids(request.messages)
        self._timestamp = clock()
        self._blocks: list[_Text | _Call] = []
        self._usage = Usage()

    @property
    def usage(self) -> Usage:
        """What the call took; setting it adds the cost, where there are prices."""
        return self._usage

    @usage.setter
    def usage(self, usage: Usage) -> None:
        priced = {"cost": self._prices.cost(usage)} if self._prices else {}
        self._usage = usage.model_copy(update=priced)

    @property
    def calls(self) -> int:
        """How many tool calls the answer holds so far."""
        return sum(isinstance(block, _Call) for block in self._blocks)

    def start(self) -> Start:
        return Start(self._message("stop"))

    def text(self, delta: str) -> TextDelta:
        index, seen = self._extend("text", delta)
        return TextDelta(index, seen, self._message("stop"))

    def thinking(self, delta: str) -> ThinkingDelta:
        index, seen = self._extend("thinking", delta)
        return ThinkingDelta(index, seen, self._message("stop"))

    def sign(self, signature: str) -> None:
        """Adds its signature to the thinking that came last; it may have no text of its own."""
        self._open("thinking").signature = _mend(signature)

    def redacted(self, data: str) -> None:
        """Thinking of which the provider shows nothing but ciphertext."""
        self.seal()
        block = self._open("thinking")
        block.signature, block.redacted = _mend(data), True
        self.seal()

    def seal(self) -> None:
        """What comes next is not added to the text or the thinking that came last."""
        if self._blocks and isinstance(self._blocks[-1], _Text):
            self._blocks[-1].is_open = False

    def toolcall_start(self, call_id: str, name: str) -> ToolCallStart:
        self._blocks.append(_Call(self._unique(call_id), _mend(name)))
        return ToolCallStart(len(self._blocks) - 1, self._message("toolUse"))

    def toolcall_delta(self, index: int, delta: str) -> ToolCallDelta:
        """`index` is the `content_index` of the call's start event."""
        seen = self._blocks[index].add(delta)
        return ToolCallDelta(index, seen, self._message("toolUse"))

    def toolcall_ends(self) -> list[ToolCallEnd]:
        """Closes every open call, in order."""
        return [self._close(i, b) for i, b in enumerate(self._blocks) if isinstance(b, _Call) and b.is_open]

    def done(self, stop_reason: Literal["stop", "length", "toolUse"]) -> Done:
        return Done(self._message(stop_reason))

    def failed(self, failure: ModelFailure) -> Failed:
        update = {"error_message": failure.message, "error_code": failure.code}
        return Failed(self._message("error").model_copy(update=update), failure)

    def _extend(self, kind: Literal["text", "thinking"], delta: str) -> tuple[int, str]:
        seen = self._open(kind).add(delta)
        return len(self._blocks) - 1, seen

    def _open(self, kind: Literal["text", "thinking"]) -> "_Text":
        """The block that came last, if it is of that kind and may go on, else a new one."""
        last = self._blocks[-1] if self._blocks else None
        if not isinstance(last, _Text) or last.kind != kind or not last.is_open:
            last = _Text(kind)
            self._blocks.append(last)
        return last

    def _close(self, index: int, block: "_Call") -> ToolCallEnd:
        block.is_open = False
        return ToolCallEnd(index, block.content(), self._message("toolUse"))

    def _unique(self, call_id: str) -> str:
        wanted, ordinal = _mend(call_id), self.calls
        while not wanted or wanted in self._taken:
            wanted = f"call_{self._turn}_{ordinal}"
            ordinal += 1
        self._taken.add(wanted)
        return wanted

    def _message(self, stop_reason: StopReason) -> AssistantMessage:
        return AssistantMessage(
            content=tuple(block.content() for block in self._blocks),
            api=self._origin.api,
            provider=self._origin.provider,
            model=self._origin.model,
            usage=self._usage,
            stop_reason=stop_reason,
            timestamp=self._timestamp,
        )


class _Growing:
    """Text that arrives in pieces.

    JSON escapes can cut a surrogate pair between two of them: the first half waits for the second, and is
    dropped if that never comes.
    """

    def __init__(self) -> None:
        self.whole = ""
        self._half = ""

    def add(self, delta: str) -> str:
        """Takes a piece; returns what it adds to the text."""
        text = self._half + delta
        self._half = text[-1] if text and "\ud800" <= text[-1] <= "\udbff" else ""
        seen = _mend(text.removesuffix(self._half))
        self.whole += seen
        return seen


class _Text(_Growing):
    def __init__(self, kind: Literal["text", "thinking"]) -> None:
        super().__init__()
        self.kind = kind
        self.signature: str | None = None
        self.redacted = False
        self.is_open = True

    def content(self) -> TextContent | ThinkingContent:
        if self.kind == "text":
            return TextContent(text=self.whole)
        return ThinkingContent(thinking=self.whole, thinking_signature=self.signature, redacted=self.redacted)


class _Call(_Growing):
    def __init__(self, call_id: str, name: str) -> None:
        super().__init__()
        self.call_id = call_id
        self.name = name
        self.is_open = True

    def content(self) -> ToolCall:
        return ToolCall.from_text(self.call_id, self.name, "" if self.is_open else self.whole)


def _mend(text: str) -> str:
    """Joins surrogate pairs into their character; a half without its other half becomes U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _call_ids(messages: Sequence[Message]) -> set[str]:
    return {call.id for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls}
