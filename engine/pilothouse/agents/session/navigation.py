"""Going to another place in the tree, with a summary of the branch that is left if one is wanted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from pilothouse.agents.messages import Message, TextContent, ToolResultMessage, UserContent, UserMessage
from pilothouse.agents.session.context import project
from pilothouse.agents.session.entries import (
    BranchSummaryBody,
    CompactionBody,
    CustomMessageBody,
    FileLists,
    LabelBody,
    MessageBody,
    body_of,
    id_or_root,
)
from pilothouse.agents.session.errors import SessionError
from pilothouse.agents.session.files import files_in, files_of, told
from pilothouse.agents.session.summary import BRANCH, Summariser, SummaryRequest
from pilothouse.agents.session.tokens import estimate
from pilothouse.agents.session.tree import SessionTree
from pilothouse.records.sessions import Entry


@dataclass(frozen=True, slots=True)
class NavigationPlan:
    """Where it leads: what becomes the leaf, what was said at the target, and the entries of the branch that the new
    one does not share."""

    target: UUID
    leaf: UUID | None
    editor_text: str | None
    left: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Navigation:
    """Where it led. `editor_text` is what was said there, to be said again in other words."""

    leaf: UUID | None
    editor_text: str | None = None
    summary: Entry | None = None


@dataclass(frozen=True, slots=True)
class BranchSummarySettings:
    """In tokens: `budget` is about how much of the branch is summarised, its newest part. `instructions` are a
    person's, beside our own, or in their place."""

    budget: int
    max_output_tokens: int = 8_192
    instructions: str = ""
    replace_instructions: bool = False


def plan_navigation(tree: SessionTree, target: UUID) -> NavigationPlan:
    """The leaf will be the target, or before it where the target is the user's message or an extension's. Raises
    SessionError `invalid_argument` for an id that the session does not have."""
    leaf, text = _destination(tree, target)
    shared = {entry.id for entry in tree.path(leaf)}
    return NavigationPlan(target, leaf, text, tuple(entry for entry in tree.branch() if entry.id not in shared))


async def summarise_branch(
    plan: NavigationPlan, summarise: Summariser, settings: BranchSummarySettings
) -> BranchSummaryBody | None:
    """What is told of the branch that is left, None where nothing was said on it. Raises SummaryError."""
    messages = _worth_telling(plan.left, settings.budget)
    if not messages:
        return None
    own = () if settings.replace_instructions and settings.instructions else (BRANCH,)
    asked = "\n\n".join(filter(None, (*own, settings.instructions)))
    summary = await summarise(SummaryRequest(messages, asked, settings.max_output_tokens))
    files = files_of(_all_messages(plan.left), _files_before(plan.left))
    return BranchSummaryBody(
        from_id=id_or_root(plan.leaf),
        summary=summary.text + told(files),
        details=files.to_wire(),
        usage=summary.usage,
    )


async def navigate(
    tree: SessionTree, plan: NavigationPlan, summary: BranchSummaryBody | None = None, label: str | None = None
) -> Navigation:
    """Goes there in one write: the move, the summary below the new leaf, and a label of that or of the target. Going
    where the leaf is changes nothing."""
    if plan.target == tree.leaf:
        return Navigation(tree.leaf)
    new = [tree.new_entry(body) for body in (tree.leaf_at(plan.leaf), summary) if body]
    if label and label.strip():
        labelled = new[1].id if summary else plan.target
        new.append(tree.new_entry(LabelBody(target_id=str(labelled), label=label.strip())))
    written = await tree.write(new)
    return Navigation(tree.leaf, plan.editor_text, written[1] if summary else None)


def _destination(tree: SessionTree, target: UUID) -> tuple[UUID | None, str | None]:
    try:
        entry = tree.node(target)
    except SessionError as error:
        raise SessionError("invalid_argument", str(error)) from None
    match body_of(entry):
        case MessageBody(message=UserMessage(content=content)) | CustomMessageBody(content=content):
            return entry.parent, _text(content)
        case _:
            return target, None


def _worth_telling(entries: Sequence[Entry], budget: int) -> list[Message]:
    """The newest messages of the entries that fit into the budget, in order. Results of tools are left out: what
    came of them is in what was said next."""
    chosen: list[Message] = []
    for entry in reversed(entries):
        messages = [message for message in _messages(entry) if not isinstance(message, ToolResultMessage)]
        budget -= estimate(messages)
        if budget < 0:
            break
        chosen += reversed(messages)
    return chosen[::-1]


def _messages(entry: Entry) -> tuple[Message, ...]:
    body = body_of(entry) if entry.type == CompactionBody.type else None
    if isinstance(body, CompactionBody):
        return (UserMessage.of(body.summary, 0),)
    return project(entry, {})


def _all_messages(entries: Iterable[Entry]) -> Iterable[Message]:
    return (message for entry in entries for message in _messages(entry))


def _files_before(entries: Iterable[Entry]) -> FileLists:
    """Of all summaries on the branch."""
    bodies = (body_of(entry) for entry in entries if entry.type in (CompactionBody.type, BranchSummaryBody.type))
    lists = [files_in(body) for body in bodies if isinstance(body, CompactionBody | BranchSummaryBody)]
    return FileLists(
        read_files=tuple(path for one in lists for path in one.read_files),
        modified_files=tuple(path for one in lists for path in one.modified_files),
    )


def _text(content: str | Sequence[UserContent]) -> str:
    if isinstance(content, str):
        return content
    return "".join(block.text for block in content if isinstance(block, TextContent))
