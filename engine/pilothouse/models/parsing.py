"""Reading what servers send: the parts that all formats share."""

import json
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError

from pilothouse.agents.messages import Usage
from pilothouse.models.builder import MessageBuilder
from pilothouse.models.failures import CallError, call_error
from pilothouse.models.provider import ModelEvent

T = TypeVar("T", bound=BaseModel)
End: TypeAlias = Literal["stop", "length", "toolUse", "filtered"]


def _count(value: object) -> int:
    """A wrong figure of tokens is not worth losing an answer for."""
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


Count = Annotated[int, BeforeValidator(_count)]


def parse(kind: type[T], data: str) -> T:
    """The event of a JSON text. Raises `CallError` that names the field which is wrong."""
    try:
        return kind.model_validate(json.loads(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"][:8])
        raise malformed(f"{where}: {first['msg']}") from None
    except (ValueError, RecursionError) as error:
        raise malformed(type(error).__name__) from None


def split_input(input: int, output: int, cache_read: int = 0, cache_write: int = 0) -> Usage:
    """The usage where the server counts what its cache held as part of the input. No figure becomes negative."""
    read = min(cache_read, input)
    written = min(cache_write, input - read)
    return Usage.of(input=input - read - written, output=output, cache_read=read, cache_write=written)


def malformed(what: str) -> CallError:
    return call_error("F-DEP", f"the model server sent a malformed event ({what})", retryable=True)


def check_role(role: str | None) -> None:
    """Refuses an answer in the name of someone else than the model."""
    if role not in (None, "", "assistant"):
        raise malformed(f"the answer has the role {role[:40]!r}, not assistant")


def ending(builder: MessageBuilder, end: End) -> list[ModelEvent]:
    """The events that close an answer. Several servers say "stop" beside tool calls; some announce calls and send
    none, which is a failure, as is an answer that a filter stopped."""
    if end == "filtered":
        raise call_error("F-SEC", "the model server's content filter stopped the answer")
    reason = "toolUse" if builder.calls and end == "stop" else end
    if reason == "toolUse" and not builder.calls:
        raise call_error("F-DEP", "the model server announced tool calls and sent none", retryable=True)
    return [*builder.toolcall_ends(), builder.done(reason)]


def known(ends: Mapping[str, End], word: str) -> End:
    """What a server's word for the end of an answer means. Raises `CallError` for a word that is not known: taken for
    an end like any other, a server's trouble would pass as the model's answer."""
    if word not in ends:
        what = f"the model server ended the answer for a reason that is not known: {word[:80]!r}"
        raise call_error("F-DEP", what, retryable=True)
    return ends[word]


def incomplete() -> CallError:
    return call_error("F-DEP", "the stream ended before the answer was complete", retryable=True)
