"""Sessions as files, and how hypothesis draws them: entries of all types, in a tree, with fields of later versions."""

import json
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

TIME = "2026-01-02T03:04:05.678Z"
HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": TIME, "cwd": "/work"}


def entry(id: str, parent: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "id": id, "parentId": parent, "timestamp": TIME, **fields}


def message(id: str, parent: str | None, text: str = "hi") -> dict[str, Any]:
    said = {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 1}
    return entry(id, parent, "message", message=said)


def jsonl(*lines: dict[str, Any], ascii: bool = True) -> bytes:
    return "".join(json.dumps(line, ensure_ascii=ascii) + "\n" for line in lines).encode()


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
unknown = st.dictionaries(texts.map(lambda name: f"x-{name}"), values, max_size=2)
"""Fields that no version has yet."""

_image = st.sampled_from(["mediaType", "mimeType"]).map(lambda name: {"type": "image", name: "image/png", "data": "AA"})
_blocks = st.lists(texts.map(lambda text: {"type": "text", "text": text}) | _image, max_size=3)
_usage = {"input": 1, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 3, "cost": {"total": 0.5}}
_calls = st.lists(st.sampled_from("ABC"), max_size=2, unique=True).map(
    lambda ids: [{"type": "toolCall", "id": id, "name": "say", "arguments": {"text": id}} for id in ids]
)


def _said(role: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    known = st.fixed_dictionaries({"role": st.just(role), "timestamp": st.just(1), **fields})
    return st.builds(lambda message, more: {**message, **more}, known, unknown)


_assistant = {
    "content": _calls,
    "api": texts,
    "provider": texts,
    "model": texts,
    "usage": st.just(_usage),
    "stopReason": st.sampled_from(["stop", "toolUse", "error"]),
}
_result = {"toolCallId": st.sampled_from("ABC"), "toolName": texts, "content": _blocks, "isError": st.booleans()}
_messages = (
    _said("user", content=_blocks)
    | _said("assistant", **_assistant)
    | _said("toolResult", **_result, details=values)
    | _said("bashExecution", command=texts, output=texts)
)


_summary = {"summary": texts, "details": values, "usage": st.just(_usage)}
_fields: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "message": {"message": _messages},
    "model_change": {"provider": texts, "modelId": texts},
    "thinking_level_change": {"thinkingLevel": st.sampled_from(["off", "max"])},
    "active_tools_change": {"activeToolNames": st.lists(texts, max_size=2)},
    "compaction": {**_summary, "firstKeptEntryId": st.just(None), "tokensBefore": st.integers(0, 9)},
    "compaction with a tail": {**_summary, "retainedTail": st.lists(_messages, max_size=2), "tokensBefore": st.just(1)},
    "branch_summary": {**_summary, "fromId": st.sampled_from([None, "root"])},
    "custom": {"customType": texts, "data": values},
    "custom_message": {"customType": texts, "content": texts | _blocks, "display": st.booleans()},
    "session_info": {"name": texts},
    "label": {"targetId": st.just(None), "label": texts},
    "leaf": {"targetId": st.just(None)},
    "hologram": {"anything": values},
}
_REFERENCES = ("firstKeptEntryId", "fromId", "targetId")

_entries = st.one_of(
    *[st.tuples(st.just(kind.split()[0]), st.fixed_dictionaries(known), unknown) for kind, known in _fields.items()]
)
_places = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), _entries), max_size=8)
"""For each entry: where it hangs, what it refers to, and what it is."""


def _file(ids: list[str], places: list[Any], more: dict[str, Any]) -> list[dict[str, Any]]:
    """Parents and references are entries that stand before, as a file needs it; `leaf` entries have no children."""
    lines: list[dict[str, Any]] = [{**HEADER, **more}]
    nodes: list[str] = []
    for id, (parent, target, (kind, fields, others)) in zip(ids, places, strict=False):
        if not nodes and kind in ("label", "leaf"):
            continue
        named = nodes[target % len(nodes)] if nodes else "root"
        referring = {name: named for name in _REFERENCES if name in fields and fields[name] is None}
        hangs = [None, *nodes][parent % (len(nodes) + 1)]
        lines.append(entry(id, hangs, kind, **fields, **others) | referring)
        if kind != "leaf":
            nodes.append(id)
    return lines


def _files(ids: st.SearchStrategy[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.builds(_file, st.lists(ids, min_size=8, max_size=8, unique=True), _places, unknown)


uuids = st.uuids().map(str)
short_ids = st.integers(0, 2**32 - 1).map(lambda number: f"{number:08x}")
upper_uuids = st.uuids().map(lambda id: str(UUID(int=id.int | 15)).upper())  # ends in an F
files = _files(uuids | short_ids)
files_with_uuids = _files(uuids)
files_to_rename = _files(short_ids | upper_uuids)
