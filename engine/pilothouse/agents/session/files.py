"""Which files the summarised part of a conversation was about."""

from collections.abc import Iterable

from pydantic import ValidationError

from pilothouse.agents.messages import AssistantMessage, Message, ToolCall
from pilothouse.agents.session.entries import BranchSummaryBody, CompactionBody, FileLists

_READS = frozenset({"file_read", "read"})
_WRITES = frozenset({"file_write", "apply_patch", "write", "edit"})
"""Our tools and the harness's own, whose sessions can be imported."""


def files_of(messages: Iterable[Message], before: FileLists) -> FileLists:
    """The files that the calls of the messages name, and those of `before`."""
    calls = [call for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls]
    read = {*before.read_files, *_paths(calls, _READS)}
    modified = {*before.modified_files, *_paths(calls, _WRITES)}
    return FileLists(read_files=tuple(sorted(read - modified)), modified_files=tuple(sorted(modified)))


def files_in(body: CompactionBody | BranchSummaryBody) -> FileLists:
    """What an earlier summary says of files; nothing where a hook made it."""
    if body.from_hook or not isinstance(body.details, dict):
        return FileLists()
    try:
        return FileLists.model_validate(body.details, by_alias=True)
    except ValidationError:
        return FileLists()


def told(files: FileLists) -> str:
    """The lists as the end of a summary; empty where there are none."""
    lists = (("Files read", files.read_files), ("Files changed", files.modified_files))
    return "".join(f"\n\n{title}:\n" + "\n".join(f"- {path}" for path in paths) for title, paths in lists if paths)


def _paths(calls: Iterable[ToolCall], tools: frozenset[str]) -> Iterable[str]:
    for call in calls:
        path = call.arguments.get("path")
        if call.name in tools and isinstance(path, str) and path:
            yield path
