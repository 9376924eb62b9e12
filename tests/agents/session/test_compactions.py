"""Over any number of compactions, every message is kept or was summarised, and never both."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.agents.convert import convert_to_llm
from pilothouse.agents.messages import Message
from pilothouse.agents.repair import repaired
from pilothouse.agents.session import (
    CompactionError,
    CompactionSettings,
    SessionTree,
    build_context,
    compact,
    context_tokens,
    estimate,
)
from pilothouse.store.memory import MemoryRunStore
from tests.agents.desk import a_desk
from tests.agents.session.making import Teller, answer, result, text_of, user

SETTINGS = CompactionSettings(window=600, reserve=100, keep_recent=100)

sizes = st.sampled_from([1, 40, 400, 3_000])
turns = st.tuples(sizes, st.lists(st.lists(sizes, min_size=1, max_size=3), max_size=3), sizes)
"""The characters of what a user says, of the results of each batch of calls, and of the last answer."""


class Numbered:
    """Messages whose texts are all different."""

    def __init__(self) -> None:
        self._count = 0

    def _text(self, size: int) -> str:
        self._count += 1
        return f"{self._count}:" + "x" * size

    def turn(self, asked: int, batches: Sequence[Sequence[int]], answered: int) -> list[Message]:
        made: list[Message] = [user(self._text(asked))]
        for batch in batches:
            calls = [self._text(0) for _ in batch]
            made.append(answer(self._text(1), *calls))
            made += [result(call, self._text(size)) for call, size in zip(calls, batch, strict=True)]
        return [*made, answer(self._text(answered))]


@pytest.mark.feature("A59")
@given(st.lists(turns, min_size=3, max_size=12), st.sampled_from(["short", "x" * 300]))
@settings(max_examples=150)
def test_nothing_is_lost_and_the_context_shrinks_or_a_typed_failure_says_so(
    conversation: list[tuple[int, list[list[int]], int]], summary: str
) -> None:
    asyncio.run(_converse(conversation, summary))


async def _converse(conversation: list[tuple[int, list[list[int]], int]], summary: str) -> None:
    async with a_desk(MemoryRunStore()) as desk:
        tree = await SessionTree.open(await desk.attempt(), desk.session)
        numbered, told, said = Numbered(), Teller(lambda _: summary), list[Message]()
        for turn in conversation:
            for message in numbered.turn(*turn):
                said.append(message)
                await tree.append([message])
            before = estimate(build_context(tree.branch()).messages)
            if context_tokens(build_context(tree.branch()).messages) > SETTINGS.threshold:
                await _compact(tree, told, before)
            _check_all_there(tree, told, said)


async def _compact(tree: SessionTree, told: Teller, before: int) -> None:
    entries, requests = tree.entries, list(told.requests)
    code = await _tried(tree, told)
    if code is None:
        assert estimate(build_context(tree.branch()).messages) < before
        assert await _tried(tree, told) == "nothing_to_compact"
    else:
        assert code in ("nothing_to_compact", "no_gain")
        assert tree.entries == entries
        told.requests[:] = requests


async def _tried(tree: SessionTree, told: Teller) -> str | None:
    """The code of the failure, None where there is none."""
    try:
        await compact(tree, told, SETTINGS)
    except CompactionError as error:
        return error.code
    return None


def _check_all_there(tree: SessionTree, told: Teller, said: Sequence[Message]) -> None:
    seen = build_context(tree.branch()).messages
    kept = [text_of(message) for message in seen if message.role != "compactionSummary"]
    assert Counter([*map(text_of, told.messages), *kept]) == Counter(map(text_of, said))
    assert kept == [text_of(message) for message in said][len(said) - len(kept) :]
    shown = convert_to_llm(seen)
    assert repaired(shown) == shown
