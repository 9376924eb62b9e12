"""Compaction: the older part of a conversation becomes a summary, the newer one stays.

Nothing is removed from the session; a `compaction` entry changes what of the branch is the context. It is one append,
after the summary is there. A process that dies before it has compacted nothing, and the next one compacts anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pilothouse.agents.messages import CustomMessage, Message, Usage
from pilothouse.agents.session.context import Part, Projectors, messages_of, parts_of
from pilothouse.agents.session.cut import find_cut
from pilothouse.agents.session.entries import CompactionBody, FileLists
from pilothouse.agents.session.errors import CompactionError, SummaryError
from pilothouse.agents.session.files import files_in, files_of, told
from pilothouse.agents.session.summary import CONVERSATION, TURN, Summariser, Summary, SummaryRequest
from pilothouse.agents.session.tokens import context_tokens, estimate
from pilothouse.agents.session.tree import SessionTree
from pilothouse.agents.usage import total_of
from pilothouse.records.sessions import Entry

_TURN_HEADING = "## The turn that goes on below, up to there"
_HISTORY_SHARE = 0.8
_TURN_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class CompactionSettings:
    """In tokens: `window` is all that the model takes, `reserve` is left free for its answer, and about `keep_recent`
    of the newest part stay as they are."""

    window: int
    reserve: int = 16_384
    keep_recent: int = 20_000
    enabled: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.reserve < self.window:
            raise ValueError(f"a reserve of {self.reserve} tokens must lie between 0 and the window of {self.window}")

    @property
    def threshold(self) -> int:
        return self.window - self.reserve

    @property
    def keep(self) -> int:
        """What is kept leaves at least half of what may be used to what comes."""
        return min(self.keep_recent, self.threshold // 2)


def should_compact(tokens: int, settings: CompactionSettings) -> bool:
    """Whether a context of so many tokens is too large for another request."""
    return settings.enabled and tokens > settings.threshold


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a compaction of a branch will do. `history` and `turn` are summarised, each by itself; `turn` is the
    beginning of a turn whose end is kept."""

    history: tuple[Message, ...]
    turn: tuple[Message, ...]
    kept: Sequence[Part]
    previous: str | None
    files: FileLists
    tokens_before: int
    estimate_before: int


def prepare(branch: Sequence[Entry], settings: CompactionSettings, projectors: Projectors | None = None) -> Preparation:
    """Raises CompactionError `nothing_to_compact`."""
    if not branch or branch[-1].type == CompactionBody.type:
        raise _nothing()
    parts = parts_of(branch, projectors or {})
    all_parts = [*parts.kept, *parts.later]
    cut = find_cut(all_parts, settings.keep, settings.threshold // 2)
    history, turn = messages_of(all_parts[: cut.turn]), messages_of(all_parts[cut.turn : cut.kept])
    if not history and not turn:
        raise _nothing()
    files = files_in(parts.compaction) if parts.compaction else FileLists()
    return Preparation(
        history,
        turn,
        all_parts[cut.kept :],
        parts.compaction.summary.removesuffix(told(files)) if parts.compaction else None,
        files_of((*history, *turn), files),
        context_tokens(parts.messages, len(parts.old)),
        estimate(parts.messages),
    )


async def compact(
    tree: SessionTree,
    summarise: Summariser,
    settings: CompactionSettings,
    instructions: str = "",
    projectors: Projectors | None = None,
) -> Entry:
    """Summarises the older part of the branch and returns the entry that says so.

    For the time between two turns: calls without a result would be summarised with the rest. `instructions` are a
    person's, beside our own. Raises CompactionError; then, and where it is cancelled, nothing
    was appended. Raises Conflict where something was appended meanwhile.
    """
    preparation = prepare(tree.branch(), settings, projectors)
    try:
        text, usage = await _summary(preparation, summarise, settings.reserve, instructions)
    except SummaryError as error:
        raise CompactionError("summary_failed", f"the context was not compacted: {error}") from error
    text += told(preparation.files)
    _check_gain(preparation, text)
    [entry] = await tree.add(_body(preparation, text, usage))
    return entry


async def _summary(
    preparation: Preparation, summarise: Summariser, reserve: int, instructions: str
) -> tuple[str, Usage]:
    texts, usages = [preparation.previous] if preparation.previous else [], []
    asked = "\n\n".join(filter(None, (CONVERSATION, instructions)))
    if preparation.history:
        most = int(reserve * _HISTORY_SHARE)
        request = SummaryRequest(preparation.history, asked, most, preparation.previous)
        history = await _made(summarise, request)
        texts, usages = [history.text], [history.usage]
    if preparation.turn:
        turn = await _made(summarise, SummaryRequest(preparation.turn, TURN, int(reserve * _TURN_SHARE)))
        texts.append(f"{_TURN_HEADING}\n\n{turn.text}")
        usages.append(turn.usage)
    return "\n\n".join(texts), total_of(usages)


async def _made(summarise: Summariser, request: SummaryRequest) -> Summary:
    summary = await summarise(request)
    if not summary.text.strip():
        raise SummaryError("the summary is empty")
    return summary


def _check_gain(preparation: Preparation, text: str) -> None:
    kept = estimate(messages_of(preparation.kept))
    after = kept + estimate((CustomMessage(role="compactionSummary", summary=text, timestamp=0),))
    if after >= preparation.estimate_before:
        raise CompactionError(
            "no_gain",
            f"the context was not compacted: it holds about {preparation.estimate_before:,} tokens, and the summary "
            f"with the {kept:,} that must stay would take {after:,}",
        )


def _body(preparation: Preparation, text: str, usage: Usage) -> CompactionBody:
    return CompactionBody(
        summary=text,
        tokens_before=preparation.tokens_before,
        details=preparation.files.to_wire(),
        usage=usage,
        **_kept(preparation.kept),
    )


def _kept(parts: Sequence[Part]) -> dict[str, Any]:
    """The kept part by its first entry; by its messages where there is none, or none that is an entry."""
    if parts and parts[0].entry is not None:
        return {"first_kept_entry_id": str(parts[0].entry)}
    return {"retained_tail": messages_of(parts)}


def _nothing() -> CompactionError:
    return CompactionError("nothing_to_compact", "Nothing to compact")
