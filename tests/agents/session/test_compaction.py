"""The older part of a conversation becomes a summary; nothing is lost, whatever goes wrong."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from pilothouse.agents.messages import ImageContent, Message, Usage, UserMessage
from pilothouse.agents.session import (
    CompactionBody,
    CompactionError,
    CompactionSettings,
    LabelBody,
    SessionTree,
    SummaryError,
    body_of,
    build_context,
    compact,
    context_tokens,
    estimate,
    prepare,
    should_compact,
)
from pilothouse.records.sessions import Entry
from pilothouse.store.errors import Conflict
from tests.agents.desk import Desk, DyingStore, Killed
from tests.agents.session.making import Teller, answer, context, result, told, user

SETTINGS = CompactionSettings(window=10_000, reserve=1_000, keep_recent=200)
LONG = "x" * 800
"""Two hundred tokens."""


@pytest.fixture
async def tree(desk: Desk) -> SessionTree:
    return await SessionTree.open(await desk.attempt(), desk.session)


def body(entry: Entry) -> CompactionBody:
    found = body_of(entry)
    assert isinstance(found, CompactionBody)
    return found


def long(name: str) -> str:
    return f"{name} {LONG}"


@pytest.mark.parametrize(("tokens", "wanted"), [(9_000, False), (9_001, True)])
@pytest.mark.feature("A59")
def test_a_context_is_compacted_above_the_window_less_the_reserve(tokens: int, wanted: bool) -> None:
    assert should_compact(tokens, SETTINGS) is wanted
    assert not should_compact(tokens, CompactionSettings(10_000, 1_000, enabled=False))


@pytest.mark.parametrize("reserve", [0, 1_000, 2_000])
def test_a_reserve_must_leave_something_of_the_window(reserve: int) -> None:
    with pytest.raises(ValueError, match=f"reserve of {reserve} tokens"):
        CompactionSettings(window=1_000, reserve=reserve)


def test_the_defaults_are_those_of_the_harness() -> None:
    settings = CompactionSettings(window=200_000)
    assert (settings.enabled, settings.threshold, settings.keep) == (True, 183_616, 20_000)


@pytest.mark.parametrize(
    ("message", "tokens"),
    [
        (user("12345"), 2),
        (UserMessage(content=(ImageContent(media_type="image/png", data="A" * 9),), timestamp=1), 1_200),
        (answer("1234", "A", x="1"), 5),  # `say` and {"x": "1"}
        (result("A", ""), 0),
    ],
)
def test_tokens_are_estimated_by_characters(message: Message, tokens: int) -> None:
    assert estimate((message,)) == tokens


def test_the_last_report_of_usage_counts_and_what_came_after_it_is_estimated() -> None:
    messages: list[Message] = [
        user(LONG),
        answer("", usage=Usage(input=100, output=5, cache_read=40)),
        user("12345678"),
    ]
    assert context_tokens(messages) == 147
    messages.append(answer("", usage=Usage(total_tokens=500), stop="aborted"))
    assert context_tokens(messages) == 147
    assert context_tokens([*messages, answer("", usage=Usage(input=1, total_tokens=7))]) == 7
    assert context_tokens(messages, compacted=2) == estimate(messages)
    assert context_tokens([user(LONG), answer(LONG)]) == 400


@pytest.mark.feature("A48")
@pytest.mark.feature("A59")
async def test_the_older_part_is_summarised_and_the_newer_one_stays(tree: SessionTree) -> None:
    await tree.append([user(long("one")), answer(long("two")), user(long("three")), answer("four")])
    kept = tree.branch()[2].id
    summariser = Teller()
    entry = await compact(tree, summariser, SETTINGS, "Mind the figures.")
    assert told(summariser.messages) == [long("one"), long("two")]
    assert context(tree) == [("compactionSummary", "what was said"), ("user", long("three")), ("assistant", "four")]
    assert (entry.parent, tree.leaf) == (tree.branch()[3].id, entry.id)
    found = body(entry)
    assert (found.first_kept_entry_id, found.tokens_before, found.retained_tail) == (str(kept), 605, None)
    assert found.usage == Usage(input=7, output=3, total_tokens=10)
    [request] = summariser.requests
    assert (request.max_output_tokens, request.previous) == (800, None)
    assert request.instructions.endswith("Mind the figures.")


@pytest.mark.feature("A59")
async def test_a_turn_that_the_cut_goes_through_is_summarised_by_itself(tree: SessionTree) -> None:
    turn: list[Message] = [
        user("ask"),
        answer("", "A"),
        result("A", long("a")),
        answer(long("look"), "B"),
        result("B", "b"),
    ]
    await tree.append([user("before"), answer("that"), *turn, answer("done")])
    summariser = Teller(lambda request: f"of {len(request.messages)}")
    await compact(tree, summariser, SETTINGS)
    assert [told(request.messages) for request in summariser.requests] == [["before", "that"], ["ask", "", long("a")]]
    assert [request.max_output_tokens for request in summariser.requests] == [800, 500]
    (_, summary), *kept = context(tree)
    assert summary == "of 2\n\n## The turn that goes on below, up to there\n\nof 3"
    assert kept == [("assistant", long("look")), ("toolResult", "b"), ("assistant", "done")]
    assert body(tree.branch()[-1]).usage == Usage(input=14, output=6, total_tokens=20)


@pytest.mark.feature("A59")
async def test_a_second_compaction_updates_the_summary_and_misses_nothing(
    tree: SessionTree,
) -> None:
    await tree.append([user(long("one")), answer("two"), user(long("three"))])
    summariser = Teller(lambda request: f"summary {len(summariser.requests)}")
    await compact(tree, summariser, SETTINGS)
    await tree.append([answer("four"), user(long("five")), answer("six")])
    await compact(tree, summariser, SETTINGS)
    assert [told(request.messages) for request in summariser.requests] == [
        [long("one"), "two"],
        [long("three"), "four"],
    ]
    assert [request.previous for request in summariser.requests] == [None, "summary 1"]
    assert context(tree) == [("compactionSummary", "summary 2"), ("user", long("five")), ("assistant", "six")]


async def test_a_summary_that_has_nothing_new_to_tell_is_carried_along(tree: SessionTree) -> None:
    """Only the beginning of a turn is summarised the second time."""
    await tree.append([user(long("one")), user(long("two"))])
    await compact(tree, Teller(lambda _: "first"), SETTINGS)
    await tree.append([answer("", "A"), result("A", long("a")), answer(long("done"))])
    await compact(tree, Teller(lambda _: "second"), SETTINGS)
    assert context(tree)[0][1] == "first\n\n## The turn that goes on below, up to there\n\nsecond"


@pytest.mark.feature("A59")
async def test_a_tail_that_an_earlier_compaction_holds_is_kept_or_summarised_too(tree: SessionTree) -> None:
    tail = (user(long("one")), answer("two"), user(long("three")))
    await tree.append([user("zero")])
    await tree.add(CompactionBody(summary="first", tokens_before=9, retained_tail=tail))
    await tree.append([answer("four")])
    summariser = Teller()
    found = body(await compact(tree, summariser, SETTINGS))
    assert told(summariser.messages) == [long("one"), "two"]
    assert found.first_kept_entry_id is None
    assert told(found.retained_tail or ()) == [long("three"), "four"]
    assert context(tree)[1:] == [("user", long("three")), ("assistant", "four")]


@pytest.mark.feature("A59")
@pytest.mark.parametrize("results", [["a" * 30_000], ["a" * 30_000, "b"], ["a", "b" * 30_000]])
async def test_an_oversized_result_at_the_end_lets_the_context_shrink(tree: SessionTree, results: list[str]) -> None:
    calls = [f"call {number}" for number in range(len(results))]
    answers = [result(call, text) for call, text in zip(calls, results, strict=True)]
    await tree.append([user("one"), answer("two"), user("ask"), answer("", *calls), *answers])
    summariser = Teller()
    found = body(await compact(tree, summariser, SETTINGS))
    assert told(summariser.messages) == ["one", "two", "ask", "", *results]
    assert (found.first_kept_entry_id, found.retained_tail) == (None, ())
    assert [role for role, _ in context(tree)] == ["compactionSummary"]
    assert not should_compact(context_tokens(build_context(tree.branch()).messages), SETTINGS)


async def test_many_results_at_the_end_stay_with_their_calls_where_they_leave_room(tree: SessionTree) -> None:
    calls = ["A", "B", "C"]
    await tree.append([user(long("one")), answer(long("two")), user("ask"), answer("", *calls)])
    await tree.append([result(call, long(call)) for call in calls])
    await compact(tree, Teller(), SETTINGS)
    assert [role for role, _ in context(tree)] == ["compactionSummary", "assistant", *["toolResult"] * 3]


async def test_a_message_between_a_call_and_its_result_is_no_place_to_cut(tree: SessionTree) -> None:
    await tree.append([user(long("one")), answer("two", "A"), user(long("wait")), result("A", "a"), answer("three")])
    await compact(tree, Teller(), SETTINGS)
    assert [role for role, _ in context(tree)] == ["compactionSummary", "assistant"]


async def test_what_says_nothing_stays_with_what_it_stands_before(tree: SessionTree) -> None:
    root = await tree.append([user(long("one")), answer("two")])
    [label] = await tree.add(LabelBody(target_id=str(root), label="l"))
    await tree.append([user(long("three"))])
    assert body(await compact(tree, Teller(), SETTINGS)).first_kept_entry_id == str(label.id)


async def test_a_small_window_keeps_less(tree: SessionTree) -> None:
    await tree.append([user(long(str(number))) for number in range(10)])
    await compact(tree, Teller(), CompactionSettings(window=1_000, reserve=200, keep_recent=20_000))
    assert len(context(tree)) == 3


@pytest.mark.feature("A59")
@pytest.mark.parametrize("keeps", [["one"], ["one", "two"]])
async def test_what_is_small_or_compacted_already_is_left_alone(tree: SessionTree, keeps: list[str]) -> None:
    summariser = Teller()
    await expect_nothing(tree, summariser, "nothing_to_compact")
    await tree.append([user(text) for text in keeps])
    await expect_nothing(tree, summariser, "nothing_to_compact")
    await tree.append([user(long("more")), user(long("and more"))])
    root = tree.branch()[0].id
    await compact(tree, summariser, SETTINGS)
    await expect_nothing(tree, summariser, "nothing_to_compact")
    await tree.label(root, "said nothing")
    await expect_nothing(tree, summariser, "nothing_to_compact")
    assert len(summariser.requests) == 1


@pytest.mark.feature("A59")
@pytest.mark.parametrize(
    ("said", "code"),
    [(SummaryError("the model is down"), "summary_failed"), (" ", "summary_failed"), (LONG * 9, "no_gain")],
)
async def test_a_compaction_that_fails_loses_nothing(tree: SessionTree, said: str | SummaryError, code: str) -> None:
    await tree.append([user(long("one")), answer("two"), user(long("three"))])
    await expect_nothing(tree, Teller(lambda _: said), code)
    assert [text for _, text in context(tree)] == [long("one"), "two", long("three")]
    await compact(tree, Teller(), SETTINGS)
    assert context(tree)[0][0] == "compactionSummary"


async def expect_nothing(tree: SessionTree, summariser: Teller, code: str) -> None:
    before = tree.entries, tree.leaf
    with pytest.raises(CompactionError) as caught:
        await compact(tree, summariser, SETTINGS)
    assert caught.value.code == code
    assert (tree.entries, tree.leaf) == before


@pytest.mark.feature("A59")
async def test_a_compaction_that_is_aborted_loses_nothing(tree: SessionTree) -> None:
    await tree.append([user(long("one")), answer("two"), user(long("three"))])
    before = tree.entries
    with pytest.raises(asyncio.CancelledError):
        await compact(tree, Teller(lambda _: asyncio.CancelledError()), SETTINGS)
    assert tree.entries == before


async def test_what_is_said_while_a_summary_is_made_is_not_lost(desk: Desk) -> None:
    store = await desk.attempt()
    tree = await SessionTree.open(store, desk.session)
    await tree.append([user(long("one")), answer("two"), user(long("three"))])
    other = await SessionTree.open(store, desk.session)

    class Meanwhile(Teller):
        async def __call__(self, request: Any) -> Any:
            await other.append([user("wait")])
            return await super().__call__(request)

    with pytest.raises(Conflict):
        await compact(tree, Meanwhile(), SETTINGS)
    assert [entry.type for entry in (await desk.stored()).entries] == ["message"] * 4


@pytest.mark.feature("A48")
@pytest.mark.feature("A69")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("run_store", ["memory", "postgres"], indirect=True)
async def test_a_process_that_dies_at_the_entry_has_compacted_or_has_not(desk: Desk, after: bool) -> None:
    dying = DyingStore(await desk.attempt(), 2, after=after)
    tree = await SessionTree.open(dying, desk.session)
    await tree.append([user(long("one")), answer("two"), user(long("three"))])
    with pytest.raises(Killed):
        await compact(tree, Teller(), SETTINGS)
    assert dying.writes == ["open", "append user", "append compaction"]
    again = await SessionTree.open(await desk.attempt(), desk.session)
    if after:
        await expect_nothing(again, Teller(), "nothing_to_compact")
    else:
        await compact(again, Teller(), SETTINGS)
    assert context(again) == [("compactionSummary", "what was said"), ("user", long("three"))]
    assert [entry.type for entry in again.entries] == [*["message"] * 3, "compaction"]


def reading(*paths: str, tool: str = "file_read") -> list[Message]:
    turns: list[list[Message]] = [[answer("", path, tool=tool, path=path), result(path)] for path in paths]
    return [message for turn in turns for message in turn]


async def test_the_lists_of_files_grow_from_one_compaction_to_the_next(tree: SessionTree) -> None:
    await tree.append([user(long("go")), *reading("b", "a", "c"), *reading("c", tool="file_write"), user(long("on"))])
    first = body(await compact(tree, Teller(), SETTINGS))
    assert first.details == {"readFiles": ["a", "b"], "modifiedFiles": ["c"]}
    assert first.summary.endswith("Files read:\n- a\n- b\n\nFiles changed:\n- c")
    await tree.append([*reading("d"), *reading("a", tool="edit"), user(long("more"))])
    summariser = Teller()
    second = body(await compact(tree, summariser, SETTINGS))
    assert second.details == {"readFiles": ["b", "d"], "modifiedFiles": ["a", "c"]}
    assert [request.previous for request in summariser.requests] == ["what was said"]
    assert second.summary.count("Files read") == 1


@pytest.mark.parametrize("details", [{"readFiles": ["a"]}, {"readFiles": 3}, "by hand"])
async def test_the_details_of_a_hook_are_no_lists_of_files(tree: SessionTree, details: Any) -> None:
    hooked = details == {"readFiles": ["a"]}
    await tree.add(CompactionBody(summary="s", tokens_before=1, details=details, from_hook=hooked, retained_tail=()))
    await tree.append([user(long("one")), user(long("two"))])
    assert body(await compact(tree, Teller(), SETTINGS)).details == {"readFiles": [], "modifiedFiles": []}


async def test_a_preparation_is_a_function_of_the_branch(tree: SessionTree) -> None:
    messages: Sequence[Message] = [user(long("one")), answer("two"), user(long("three"))]
    await tree.append(messages)
    one, other = [prepare(tree.branch(), SETTINGS) for _ in range(2)]
    assert one == other
    assert (one.history, one.turn, one.tokens_before) == (tuple(messages[:2]), (), estimate(messages))
