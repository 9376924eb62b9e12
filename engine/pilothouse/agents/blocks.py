"""Where the texts and the thinking of an answer begin and end, which providers leave to be seen from their deltas."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pilothouse.agents.messages import AssistantMessage, TextContent, ThinkingContent
from pilothouse.models.provider import Delta, TextDelta, ThinkingDelta

BlockKind: TypeAlias = Literal["text", "thinking"]


@dataclass(frozen=True, slots=True)
class BlockStart:
    """The block `partial.content[content_index]` begins; it is empty yet."""

    kind: BlockKind
    content_index: int
    partial: AssistantMessage

    @property
    def type(self) -> str:
        return f"{self.kind}_start"


@dataclass(frozen=True, slots=True)
class BlockEnd:
    """The block is complete, with this `content`."""

    kind: BlockKind
    content_index: int
    content: str
    partial: AssistantMessage

    @property
    def type(self) -> str:
        return f"{self.kind}_end"


StreamEvent: TypeAlias = BlockStart | BlockEnd | Delta


class Blocks:
    """Follows one answer. A block ends where another begins, and with the answer."""

    def __init__(self) -> None:
        self._open: BlockEnd | None = None

    def around(self, delta: Delta) -> Iterator[StreamEvent]:
        """The delta, after the end of the block before it and the start of its own, where there are such."""
        if self._open is None or self._open.content_index != delta.content_index:
            yield from self.end()
            if isinstance(delta, TextDelta | ThinkingDelta):
                yield BlockStart(_kind(delta), delta.content_index, _before(delta))
        yield delta
        if isinstance(delta, TextDelta | ThinkingDelta):
            self._open = _ended(delta, self._open)

    def end(self) -> Iterator[BlockEnd]:
        if self._open is not None:
            yield self._open
        self._open = None


def _kind(delta: TextDelta | ThinkingDelta) -> BlockKind:
    return "text" if isinstance(delta, TextDelta) else "thinking"


def _before(delta: TextDelta | ThinkingDelta) -> AssistantMessage:
    empty = TextContent(text="") if isinstance(delta, TextDelta) else ThinkingContent(thinking="")
    content = (*delta.partial.content[: delta.content_index], empty)
    return delta.partial.model_copy(update={"content": content})


def _ended(delta: TextDelta | ThinkingDelta, before: BlockEnd | None) -> BlockEnd:
    content = delta.delta if before is None else before.content + delta.delta
    if before is None:
        return BlockEnd(_kind(delta), delta.content_index, content, delta.partial)
    return replace(before, content=content, partial=delta.partial)
