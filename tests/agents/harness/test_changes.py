"""What changes a harness, and what a session remembers of it; compaction and navigation."""

import asyncio

import pytest

from pilothouse.agents.errors import AgentError
from pilothouse.agents.harness import Destination
from pilothouse.agents.harness.events import (
    ModelUpdate,
    SessionCompact,
    SessionTreeMoved,
    ThinkingLevelUpdate,
    ToolsUpdate,
)
from pilothouse.agents.harness.hooks import Compacting, CompactionChange, Resources, TreeChange
from pilothouse.agents.session import (
    BranchSummaryBody,
    CompactionBody,
    CompactionSettings,
    ModelRef,
    NavigationPlan,
    Summary,
    SummaryError,
    SummaryRequest,
)
from pilothouse.tools.tool import ToolInvocation, ToolResult
from tests.agents.desk import Desk
from tests.agents.doubles import ATool, Model, calls, says
from tests.agents.harness.scene import A, entries_of, harness_on, said, texts
from tests.agents.session.making import Teller


def named(name: str, *turns: dict[str, object]) -> Model:
    model = Model(*turns)
    model.model = name
    return model


@pytest.mark.feature("A45")
@pytest.mark.feature("A46")
@pytest.mark.feature("A47")
async def test_what_was_set_is_kept_and_told_and_holds_in_a_new_process(desk: Desk) -> None:
    large, small = named("large", says("hi")), named("small", says("hi"))
    tools = ATool("read"), ATool("write")
    harness, heard = await harness_on(desk, large, *tools)
    await harness.set_model(small)
    await harness.set_thinking_level("high")
    await harness.set_active_tools(["read"])
    assert await entries_of(desk) == ["model_change", "thinking_level_change", "active_tools_change"]
    update = ModelUpdate(ModelRef("scripted", "small"))
    assert heard.seen == [update, ThinkingLevelUpdate("high"), ToolsUpdate(["read", "write"], ("read",))]
    again, _ = await harness_on(desk, large, *tools, find_model={ModelRef("scripted", "small"): small}.get)
    await again.prompt("go")
    [request] = small.requests
    assert (request.options.thinking, [spec.name for spec in request.tools]) == ("high", ["read"])


@pytest.mark.feature("A47")
async def test_names_that_no_tool_has_are_refused_now_and_in_a_new_process(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(says("hi")), ATool("read"))
    for names in (["write"], ["read", "read"]):
        with pytest.raises(AgentError) as raised:
            await harness.set_active_tools(names)
        assert raised.value.code == "invalid_argument"
    with pytest.raises(AgentError, match="named twice"):
        await harness.set_tools([ATool("read"), ATool("read")])
    assert await entries_of(desk) == []
    await harness.set_active_tools(["read"])
    with pytest.raises(AgentError, match="no tool `read`"):
        await harness.set_tools([ATool("write")])
    await harness.set_tools([ATool("write")], ["write"])
    assert (await desk.stored()).entries[-1].body["activeToolNames"] == ["write"]
    with pytest.raises(AgentError, match="no tool `write`"):
        await harness_on(desk, Model(says("hi")), ATool("read"))


async def test_a_model_that_is_not_there_is_refused(desk: Desk) -> None:
    harness, _ = await harness_on(desk, named("large", says("hi")))
    await harness.set_model(named("small", says("hi")))
    with pytest.raises(AgentError, match="no model `small` of `scripted`"):
        await harness_on(desk, named("large", says("hi")), find_model=lambda ref: None)


@pytest.mark.feature("A18")
@pytest.mark.feature("A28")
async def test_a_busy_harness_uses_what_was_set_from_the_next_turn_on(desk: Desk) -> None:
    first, second = Model(calls(A)), Model(says("unused"), says("hi"))

    async def work(call: ToolInvocation) -> ToolResult:
        await harness.set_model(second)
        await harness.set_thinking_level("low")
        await harness.set_tools([tool, ATool("more")])
        await harness.set_resources({"tone": "loud"})
        return ToolResult.of("ok")

    async def system(resources: Resources) -> str:
        return f"be {resources['tone']}"

    tool = ATool(work=work)
    harness, _ = await harness_on(desk, first, tool, system_prompt=system, resources={"tone": "calm"})
    await harness.prompt("go")
    assert first.requests[0].system == "be calm"
    [request] = second.requests
    assert (request.system, request.options.thinking) == ("be loud", "low")
    assert [spec.name for spec in request.tools] == ["say", "more"]
    kept = ["user", "assistant", "toolResult", "model_change", "thinking_level_change", "assistant"]
    assert await entries_of(desk) == kept


@pytest.mark.feature("A39")
async def test_tools_that_a_result_adds_are_shown_from_the_next_turn_on(desk: Desk) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult(ToolResult.of("ok").content, added_tool_names=("more", "none such", "say"))

    model = Model(calls(A), says("hi"))
    harness, _ = await harness_on(desk, model, ATool(work=work), ATool("more"), ATool("hidden"))
    await harness.set_active_tools(["say"])
    await harness.prompt("go")
    assert [[spec.name for spec in request.tools] for request in model.requests] == [["say"], ["say", "more"]]
    again, _ = await harness_on(desk, model, ATool(), ATool("more"))
    assert again.settings.active == ("say", "more")


SMALL = CompactionSettings(window=400, reserve=100, keep_recent=60)
LONG = "word " * 80


@pytest.mark.feature("A48")
@pytest.mark.feature("A56")
@pytest.mark.feature("A59")
async def test_a_context_that_is_too_large_is_compacted_before_the_request(desk: Desk) -> None:
    model = Model(says(LONG), says(LONG), says("hi"), says("ho"))
    harness, heard = await harness_on(desk, model, compaction=SMALL, summarise=Teller())
    for text in (LONG, LONG, LONG):
        await harness.prompt(said(text))
    entries = await entries_of(desk)
    assert entries == ["user", "assistant", "user", "compaction", "assistant", "user", "compaction", "assistant"]
    assert len(heard.all_of(SessionCompact)) == 2
    first = model.requests[1].messages[0]
    assert "what was said" in texts([first])[0]
    assert texts(model.requests[2].messages)[-1] == LONG


@pytest.mark.feature("A59")
async def test_a_run_whose_context_cannot_be_compacted_fails_and_says_why(desk: Desk) -> None:
    async def none(request: SummaryRequest) -> Summary:
        raise SummaryError("no model is there")

    model = Model(says(LONG), says("never"))
    harness, _ = await harness_on(desk, model, compaction=SMALL, summarise=none)
    await harness.prompt(LONG)
    answer = await harness.prompt(LONG)
    assert answer.stop_reason == "error"
    assert answer.error_message == "the context was not compacted: no model is there"
    assert model.calls == 1
    assert "compaction" not in await entries_of(desk)


@pytest.mark.feature("A48")
async def test_a_hook_can_compact_or_cancel(desk: Desk) -> None:
    harness, heard = await harness_on(desk, Model(says(LONG)), compaction=SMALL, summarise=Teller())
    with pytest.raises(AgentError) as raised:
        await harness.compact()
    assert (raised.value.code, str(raised.value)) == ("compaction", "Nothing to compact")
    await harness.prompt(LONG)
    cancel = True

    async def hook(event: Compacting) -> CompactionChange:
        assert event.instructions == "be short"
        own = CompactionBody(summary="mine", tokens_before=event.preparation.tokens_before, retained_tail=())
        return CompactionChange(cancel=cancel, compaction=own)

    harness.hooks.session_before_compact.add(hook)
    with pytest.raises(AgentError, match="a hook cancelled"):
        await harness.compact("be short")
    cancel = False
    entry = await harness.compact("be short")
    assert (entry.body["summary"], entry.body["fromHook"]) == ("mine", True)
    assert heard.seen[-1] == SessionCompact(entry.id, True)


@pytest.mark.feature("A63")
@pytest.mark.feature("A67")
@pytest.mark.parametrize("what", ["compact", "navigate"])
async def test_a_summary_that_is_being_made_can_be_aborted(desk: Desk, what: str) -> None:
    begun = asyncio.Event()

    async def hang(request: SummaryRequest) -> Summary:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError("never")

    harness, _ = await harness_on(desk, Model(says(LONG), says(LONG)), compaction=SMALL, summarise=hang)
    await harness.prompt(LONG)
    before, entries = harness.tree.leaf, await entries_of(desk)
    first = harness.tree.entries[0].id
    work: asyncio.Future[object] = asyncio.ensure_future(
        harness.compact() if what == "compact" else harness.navigate(Destination(first, summarise=True))
    )
    await begun.wait()
    with pytest.raises(AgentError) as raised:
        await harness.steer("nobody would take this")
    assert raised.value.code == "invalid_state"
    await harness.abort()
    if what == "compact":
        with pytest.raises(AgentError, match="Operation aborted"):
            await work
    else:
        assert await work is None
    assert (harness.tree.leaf, await entries_of(desk), harness.phase) == (before, entries, "idle")


@pytest.mark.feature("A49")
@pytest.mark.feature("A52")
@pytest.mark.feature("A53")
async def test_going_back_tells_of_the_branch_that_is_left_and_restores_what_held_there(desk: Desk) -> None:
    harness, heard = await harness_on(desk, Model(says("one"), says("two"), says("three")), summarise=Teller())
    await harness.prompt(said("first"))
    target = harness.tree.leaf
    assert target
    await harness.set_thinking_level("high")
    await harness.prompt(said("second"))
    moved = await harness.navigate(Destination(target, summarise=True, label="back here"))
    assert moved
    assert moved.summary
    assert harness.tree.labels() == {moved.summary.id: "back here"}
    assert isinstance(heard.seen[-1], SessionTreeMoved)
    assert (await entries_of(desk))[-3:] == ["leaf", "branch_summary", "label"]
    again = await harness.navigate(Destination(harness.tree.entries[0].id))
    assert again
    assert again.editor_text == "first"


@pytest.mark.feature("A49")
@pytest.mark.feature("A67")
async def test_a_hook_can_summarise_or_stop_a_navigation_and_a_bad_target_is_refused(desk: Desk) -> None:
    harness, _ = await harness_on(desk, Model(says("one"), says("two")))
    await harness.prompt(said("first"))
    target = harness.tree.leaf
    assert target
    await harness.prompt(said("second"))
    changes = [TreeChange(cancel=True), TreeChange(summary=BranchSummaryBody(from_id="x", summary="mine"), label="l")]

    async def hook(plan: NavigationPlan) -> TreeChange:
        assert plan.target == target
        return changes.pop(0)

    with pytest.raises(AgentError) as raised:
        await harness.navigate(Destination(desk.session))
    assert raised.value.code == "invalid_argument"
    harness.hooks.session_before_tree.add(hook)
    assert await harness.navigate(Destination(target)) is None
    moved = await harness.navigate(Destination(target))
    assert moved
    assert moved.summary
    assert (moved.summary.body["summary"], moved.summary.body["fromHook"]) == ("mine", True)
    assert list(harness.tree.labels().values()) == ["l"]


@pytest.mark.feature("A49")
async def test_a_branch_that_cannot_be_summarised_is_not_left(desk: Desk) -> None:
    teller = Teller(lambda request: SummaryError("no model is there"))
    harness, _ = await harness_on(desk, Model(says("one"), says("two")), summarise=teller)
    await harness.prompt(said("first"))
    before = harness.tree.leaf
    with pytest.raises(AgentError) as raised:
        await harness.navigate(Destination(harness.tree.entries[0].id, summarise=True))
    assert (raised.value.code, harness.tree.leaf) == ("branch_summary", before)
