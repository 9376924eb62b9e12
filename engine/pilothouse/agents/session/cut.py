"""Where a compaction cuts: what is summarised, and what stays as it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pilothouse.agents.messages import AssistantMessage, ToolResultMessage
from pilothouse.agents.session.context import Part
from pilothouse.agents.session.tokens import estimate


@dataclass(frozen=True, slots=True)
class Cut:
    """Parts before `kept` are summarised; of these, those from `turn` on are the beginning of a turn whose end is
    kept. Without such a turn both are the same."""

    turn: int
    kept: int


def find_cut(parts: Sequence[Part], keep: int, limit: int) -> Cut:
    """Keeps about the last `keep` tokens. The cut never parts a call from its result.

    Where the results at the end are too large for that, it keeps the whole of their turn's last answer, as long as
    that is at most `limit` tokens; beyond it nothing is kept, so that the context shrinks in any case.
    """
    kept = _kept(parts, keep, limit)
    while kept < len(parts) and kept > 0 and not parts[kept - 1].messages:
        kept -= 1  # what says nothing stays with what it stands before
    return Cut(_turn_start(parts, kept), kept)


def _kept(parts: Sequence[Part], keep: int, limit: int) -> int:
    sizes = [estimate(part.messages) for part in parts]
    places = list(_places(parts))
    wanted = _reaching(sizes, keep)
    if wanted is None:
        return min(places, default=0)
    if after := [place for place in places if place >= wanted]:
        return min(after)
    before = max(places, default=len(parts))
    return before if sum(sizes[before:]) <= limit else len(parts)


def _reaching(sizes: Sequence[int], keep: int) -> int | None:
    """The last place from which on the sizes come to `keep`, None where all together do not."""
    total = 0
    for at in reversed(range(len(sizes))):
        total += sizes[at]
        if total >= keep:
            return at
    return None


def _places(parts: Sequence[Part]) -> Iterator[int]:
    """Where a kept part may begin, from the end: not between a call and its result."""
    results = False
    for at in reversed(range(len(parts))):
        messages = parts[at].messages
        if messages and isinstance(messages[0], ToolResultMessage):
            results = True
        elif messages and (not results or isinstance(messages[0], AssistantMessage)):
            results = False
            yield at


def _turn_start(parts: Sequence[Part], kept: int) -> int:
    """Where the turn begins that the cut goes through, or the cut itself where it goes through none."""
    first = next((part for part in parts[kept:] if part.messages), None)
    if first is not None and _begins_turn(first):
        return kept
    return next((at for at in reversed(range(kept)) if _begins_turn(parts[at])), kept)


def _begins_turn(part: Part) -> bool:
    return bool(part.messages) and not isinstance(part.messages[0], AssistantMessage | ToolResultMessage)
