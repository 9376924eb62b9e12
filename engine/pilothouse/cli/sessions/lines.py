"""A session's tree in lines for people: the branch that is current goes straight down, the others stand indented.

What an entry holds is read without being believed: one that cannot be understood is a line that says so.
"""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

from pilothouse.agents.session.tree import labels_in
from pilothouse.records.sessions import Entry, Session
from pilothouse.store.rules import LEAF

LONGEST = 200
"""Characters of a line that are shown."""

MOST = 5
"""Lines of a tool's result that are shown."""

_UNSEEN = frozenset({LEAF, "label"})
"""Types that stand at other entries."""

_Body = Mapping[str, Any]


def tree_lines(session: Session) -> Iterator[str]:
    """Every entry, parents before children."""
    labels = labels_in(entry for entry in session.entries if isinstance(entry.body.get("targetId"), str))
    for depth, begins, entry in _walk(session):
        lines = [] if entry.type in _UNSEEN else [_short(line) for line in _lines(entry)]
        marks = [f"[{labels[str(entry.id)]}]"] if str(entry.id) in labels else []
        marks += ["<- the next one goes here"] if entry.id == session.leaf else []
        if marks and lines:
            lines[0] = "  ".join([lines[0], *marks])
        elif marks:
            lines = marks
        if begins:
            yield "| " * (depth - 1) + "+ another branch"
        yield from ("| " * depth + line for line in lines)


def _walk(session: Session) -> Iterator[tuple[int, bool, Entry]]:
    """Each entry with how deep it is indented, and whether a branch begins with it beside the one that goes on."""
    children, current = _children(session), _path(session)

    def below(of: UUID | None, depth: int) -> list[tuple[int, bool, Entry]]:
        """Last first. What goes on comes after the branches beside it: the current branch, else the newest one."""
        *others, on = sorted(children[of], key=lambda entry: entry.id in current)
        return [(depth, False, on), *((depth + 1, True, other) for other in reversed(others))]

    todo = below(None, 0) if session.entries else []
    while todo:
        depth, begins, entry = todo.pop()
        yield depth, begins, entry
        todo += below(entry.id, depth) if children[entry.id] else []


def _children(session: Session) -> defaultdict[UUID | None, list[Entry]]:
    found: defaultdict[UUID | None, list[Entry]] = defaultdict(list)
    for entry in session.entries:
        if entry.type != LEAF:
            found[entry.parent].append(entry)
    return found


def _path(session: Session) -> frozenset[UUID]:
    """The current branch."""
    parents = {entry.id: entry.parent for entry in session.entries}
    at, path = session.leaf, set[UUID]()
    while at is not None:
        path.add(at)
        at = parents[at]
    return frozenset(path)


def _lines(entry: Entry) -> Iterator[str]:
    body = entry.body
    match entry.type:
        case "message":
            yield from message_lines(body.get("message"))
        case "custom_message":
            yield from _content(str(body.get("customType")), body.get("content"))
        case "compaction":
            yield f"-- compacted {body.get('tokensBefore')} tokens: {_one_line(body.get('summary'))}"
        case "branch_summary":
            yield f"-- of the branch that was left: {_one_line(body.get('summary'))}"
        case "model_change":
            yield f"-- model: {body.get('provider')}/{body.get('modelId')}"
        case "thinking_level_change":
            yield f"-- thinking: {body.get('thinkingLevel')}"
        case "active_tools_change":
            yield f"-- tools: {', '.join(map(str, body.get('activeToolNames') or ['none']))}"
        case "session_info":
            yield f"-- named: {body.get('name') or 'nothing'}"
        case kind:
            yield f"-- {kind} {body.get('customType') or ''}".rstrip()


def message_lines(message: Any) -> Iterator[str]:
    """What was said, and by whom; of a tool's result, its beginning."""
    if not isinstance(message, Mapping):
        yield "-- a message that cannot be read"
        return
    role, content = str(message.get("role")), message.get("content")
    if role == "toolResult":
        lines = list(_content(f"{message.get('toolName')}{' failed' if message.get('isError') else ''}", content))
        yield from lines[:MOST]
        if len(lines) > MOST:
            yield f"  ... {len(lines) - MOST} more lines"
    else:
        yield from _content(role, content)
    if message.get("errorMessage"):
        yield f"{role} failed: {message['errorMessage']}"


def _content(who: str, content: Any) -> Iterator[str]:
    """The first line of each block says who, the others are indented."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    for block in blocks if isinstance(blocks, Sequence) else ():
        first, *others = (_block(block) if isinstance(block, Mapping) else "?").split("\n")
        yield f"{who}: {first}"
        yield from (f"  {line}" for line in others)


def _block(block: _Body) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text"))
        case "thinking":
            return f"(thinking) {_one_line(block.get('thinking'))}"
        case "toolCall":
            return f"{block.get('name')}({json.dumps(block.get('arguments'), ensure_ascii=False)})"
        case kind:
            return f"<{kind}>"


def _one_line(text: object) -> str:
    return " ".join(str(text or "").split())


def _short(line: str) -> str:
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}..."
