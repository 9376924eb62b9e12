"""Tool calls in the text of an answer, in the two forms that models without native calls were trained on."""

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

OPEN, CLOSE = "<tool_call>", "</tool_call>"
RESPONSE = "tool_response"

_FENCED = re.compile(r"```\w*[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
_LONGEST_NAME = 128
"""Characters; what stands in a name's place beyond that is none, and is not repeated to anyone."""
_NAME = re.compile(rf'"name"\s*:\s*"([^"]{{1,{_LONGEST_NAME}}})"')
_ARGUMENTS = ("arguments", "parameters")
_FIELDS = frozenset({"name", *_ARGUMENTS, "type", "id"})


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A call as it stands in the text. `arguments` are JSON, or what was meant to be."""

    name: str
    arguments: str


def read_calls(text: str, tools: Collection[str]) -> tuple[str, list[WrittenCall]]:
    """What the text says beside its calls, and its calls: `<tool_call>` blocks, or one JSON object that is the whole
    text and names one of `tools`.

    A block that cannot be read is a call, too: it gets an error result, and the model another try. What the model
    wrote from a result of its own invention on is dropped, and with it the calls that build on it.
    """
    said, _, rest = text.partition(OPEN)
    if not rest:
        call = _bare(text, tools)
        return ("", [call]) if call else (text, [])
    calls: list[WrittenCall] = []
    while rest:
        call, rest = _block(rest)
        calls.append(call)
        between, _, rest = rest.partition(OPEN)
        before, invented, _ = between.partition(f"<{RESPONSE}")
        said += before
        if invented:
            break
    return said.strip(), calls


def _block(rest: str) -> tuple[WrittenCall, str]:
    """The call that begins there, and what stands after it. An answer may end without the closing tag."""
    body = rest.lstrip()
    try:
        value, end = _DECODER.raw_decode(body)
    except (ValueError, RecursionError):
        broken, _, after = body.partition(CLOSE)
        return _unreadable(broken), after
    _, _, after = body[end:].partition(CLOSE)
    return _call(value) or _unreadable(body[:end]), after


def _bare(text: str, tools: Collection[str]) -> WrittenCall | None:
    """An object of the fields that a call has, so that an answer in JSON is not taken for one."""
    fenced = _FENCED.fullmatch(text.strip())
    try:
        value = _DECODER.decode(fenced[1] if fenced else text.strip())
    except (ValueError, RecursionError):
        return None
    call = _call(value)
    return call if call and call.name in tools and any(name in value for name in _ARGUMENTS) else None


def _call(value: Any) -> WrittenCall | None:
    if not isinstance(value, dict) or not set(value) <= _FIELDS:
        return None
    if not isinstance(name := value.get("name"), str) or not 0 < len(name) <= _LONGEST_NAME:
        return None
    arguments: Any = next((value[name] for name in _ARGUMENTS if name in value), {})
    return WrittenCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def _unreadable(text: str) -> WrittenCall:
    name = _NAME.search(text)
    return WrittenCall(name[1] if name else "tool_call", text.strip())


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """What reads the arguments refuses a key that stands twice, and must see it."""
    if len(value := dict(pairs)) != len(pairs):
        raise ValueError("the same key twice")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)
