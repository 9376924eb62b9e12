"""A process that dies anywhere leaves a session that the next one continues: nothing recorded is done again."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from pilothouse.agents.bounds import Limits
from pilothouse.agents.messages import AssistantMessage, ToolResultMessage
from pilothouse.agents.resume import find_position, worked
from pilothouse.agents.session import SessionTree
from pilothouse.agents.task import AgentResult, AgentTask, run_agent
from pilothouse.records.failures import OUTCOME_UNKNOWN, FailureCode
from pilothouse.store.errors import Superseded
from pilothouse.store.ports import AttemptStore
from pilothouse.tools.tool import ExecutionMode, ToolInvocation, ToolResult
from tests.agents.desk import Desk, Desks, DyingStore, Killed
from tests.agents.doubles import ATool, Events, HangingModel, Model, calls, registry, says

FAR = 10_000
"""More writes than any scenario makes."""


@dataclass
class Scene:
    """A script and its tools; `effects` counts what the tools did in the world, by call."""

    turns: Sequence[Mapping[str, Any]]
    idempotent: bool = False
    mode: ExecutionMode = "parallel"
    output_schema: Mapping[str, Any] | None = None
    terminate: bool = False
    effects: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model = Model(*self.turns)

    async def _work(self, call: ToolInvocation) -> ToolResult:
        self.effects.append(call.id)
        await asyncio.sleep(0)
        return ToolResult(ToolResult.of(f"did {call.id}").content, terminate=self.terminate)

    async def play(self, desk: Desk, store: AttemptStore, attempt: int = 1) -> AgentResult:
        tool = ATool(work=self._work, idempotent=self.idempotent, execution_mode=self.mode)
        task = AgentTask(desk.session, "Go.", output_schema=self.output_schema, attempt=attempt)
        return await run_agent(task, store, self.model, registry(tool))


def say(*ids: str) -> dict[str, Any]:
    return calls(*[(call, "say", {"text": call}) for call in ids], text=f"turn {ids[0]}")


NUMBER = {"type": "integer"}
SCENES = {
    "an answer": Scene([says("hi")]),
    "one call": Scene([say("A"), says("done")]),
    "one call that may be repeated": Scene([say("A"), says("done")], idempotent=True),
    "three calls at once": Scene([say("A", "B", "C"), says("done")], idempotent=True),
    "three calls at once, none of them repeatable": Scene([say("A", "B", "C"), says("done")]),
    "calls one by one": Scene([say("A", "B"), says("done")], idempotent=True, mode="sequential"),
    "several turns": Scene([say("A"), say("B", "C"), say("D"), says("done")], idempotent=True),
    "a bad call beside a good one": Scene(
        [calls(("A", "say", {"text": "a"}), ("X", "nope", {})), says("done")], idempotent=True
    ),
    "an answer that is asked again": Scene([says("no"), says("7")], output_schema=NUMBER),
    "a batch that terminates": Scene([say("A", "B"), says("never")], idempotent=True, terminate=True),
    "a failed model call": Scene([say("A"), {"error": {"message": "down"}}, says("never")], idempotent=True),
}


MATRIX = [(name, "memory") for name in SCENES] + [
    (name, "postgres") for name in ("one call", "calls one by one", "several turns")
]


def fresh(scene: Scene) -> Scene:
    return Scene(scene.turns, scene.idempotent, scene.mode, scene.output_schema, scene.terminate)


def transcript(tree: Sequence[Any]) -> list[tuple[str, str]]:
    """Who said what on the branch."""
    found = []
    for message in tree:
        text = message.text if isinstance(message, AssistantMessage | ToolResultMessage) else "…"
        found.append((message.role, text))
    return found


async def branch_of(desk: Desk, attempt: int = 1) -> list[tuple[str, str]]:
    store = await desk.attempt(attempt)
    position = await find_position(store, await SessionTree.open(store, desk.session, attempt))
    return transcript(position.messages)


def unknown(result: AgentResult) -> bool:
    return result.failure is not None and result.failure.reason == OUTCOME_UNKNOWN


@pytest.mark.feature("A44")
@pytest.mark.feature("A69")
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(("name", "run_store"), MATRIX, indirect=["run_store"])
async def test_death_at_any_write_loses_nothing_and_repeats_nothing(name: str, after: bool, desks: Desks) -> None:
    """Each write of each scene is a place to die, before it or right after it."""
    whole, undisturbed = fresh(SCENES[name]), await desks.new()
    store = DyingStore(await undisturbed.attempt(), FAR, after=after)
    expected = await whole.play(undisturbed, store)
    told = await branch_of(undisturbed)
    for at, write in enumerate(store.writes):
        scene, desk = fresh(SCENES[name]), await desks.new()
        dying = DyingStore(await desk.attempt(), at, after=after)
        with pytest.raises(Killed):
            await scene.play(desk, dying)
        result = await scene.play(desk, await desk.attempt())
        where = f"{name}, killed at write {at}: {write}"
        if unknown(result):
            assert not scene.idempotent, where
        else:
            assert same(result, expected), where
            assert await branch_of(desk) == told, where
            lost_answer = write == "append assistant" and not after
            assert scene.model.calls == whole.model.calls + lost_answer, where
        for call in set(scene.effects) if not scene.idempotent else dying.recorded:
            assert scene.effects.count(call) == 1, where


async def test_an_intent_without_a_result_is_not_run_again_and_the_failure_names_it(desk: Desk) -> None:
    scene = Scene([say("A", "B"), says("never")])
    with pytest.raises(Killed):
        await scene.play(desk, DyingStore(await desk.attempt(), 5, after=False))
    before = await desk.stored()
    effects = list(scene.effects)
    result = await scene.play(desk, await desk.attempt())
    assert result.failure is not None
    assert (result.failure.code, result.failure.reason) == (FailureCode.UNK, OUTCOME_UNKNOWN)
    assert "`A` of the tool `say`" in result.failure.message
    assert scene.effects == effects
    assert (await desk.stored()).entries == before.entries
    assert result.outputs["text"] == "turn A"


@pytest.mark.parametrize("last", [says("done"), say("B") | {"error": {"message": "the line was cut"}}])
async def test_a_finished_task_gives_the_same_outputs_again(desk: Desk, last: Mapping[str, Any]) -> None:
    scene = Scene([say("A"), last])
    first = await scene.play(desk, await desk.attempt())
    events = Events()
    task = AgentTask(desk.session, "Go.")
    again = await run_agent(task, await desk.attempt(), scene.model, registry(), events)
    assert again == first
    assert scene.model.calls == 2
    assert events.names == ["agent_start", "agent_end"]


async def test_a_recorded_result_is_announced_as_a_message_and_not_as_an_execution(desk: Desk) -> None:
    scene = Scene([say("A", "B"), says("done")], idempotent=True)
    dying = DyingStore(await desk.attempt(), 5, after=True)
    with pytest.raises(Killed):
        await scene.play(desk, dying)
    assert dying.recorded == {"A"}
    events, tool = Events(), ATool(idempotent=True)
    await run_agent(AgentTask(desk.session, "Go."), await desk.attempt(), scene.model, registry(tool), events)
    executed = ["tool_execution_start B", "tool_execution_end B"]
    answered = [f"message_{what} {call}" for call in "AB" for what in ("start", "end")]
    assert events.names[:8] == ["agent_start", "turn_start", *executed, *answered]
    assert tool.calls == ["B"]


async def test_a_large_result_is_reused_from_its_blob(desk: Desk) -> None:
    async def work(call: ToolInvocation) -> ToolResult:
        return ToolResult.of(call.id * 200_000)

    model, tool = Model(say("A", "B"), says("done")), ATool(work=work, idempotent=True)
    task = AgentTask(desk.session, "Go.")
    with pytest.raises(Killed):
        await run_agent(task, DyingStore(await desk.attempt(), 5, after=True), model, registry(tool))
    await run_agent(task, await desk.attempt(), model, registry(tool))
    results = [message for message in model.requests[1].messages if isinstance(message, ToolResultMessage)]
    assert [result.text for result in results] == ["A" * 200_000, "B" * 200_000]
    assert tool.calls.count("A") == 1


async def test_the_result_of_the_last_call_is_recorded_with_the_messages_of_all(desk: Desk) -> None:
    scene = Scene([say("A", "B", "C"), says("done")])
    store = DyingStore(await desk.attempt(), FAR, after=False)
    await scene.play(desk, store)
    assert store.writes[3:9] == ["intend", "intend", "intend", "record", "record", "append toolResult"]
    rows = await store.tool_calls(desk.session, (await desk.stored()).entries[1].id)
    assert [row.finished_at is not None for row in rows] == [True] * 3


async def test_a_retry_starts_a_branch_at_the_first_message(desk: Desk) -> None:
    scene = Scene([say("A"), {"error": {"message": "down"}}])
    await scene.play(desk, await desk.attempt())
    better = Scene([say("B"), says("done")])
    result = await better.play(desk, await desk.attempt(2), attempt=2)
    assert (result.failure, result.outputs["turns"]) == (None, 2)
    assert [message.role for message in better.model.requests[0].messages] == ["user"]
    told = await branch_of(desk, attempt=2)
    assert told == [("user", "…"), ("assistant", "turn B"), ("toolResult", "did B"), ("assistant", "done")]
    types = [entry.type for entry in (await desk.stored()).entries]
    assert types == ["message"] * 4 + ["leaf"] + ["message"] * 3


@pytest.mark.parametrize("at", range(6))
async def test_a_retry_that_died_continues_its_own_branch(desk: Desk, at: int) -> None:
    await Scene([{"error": {"message": "down"}}]).play(desk, await desk.attempt())
    scene = Scene([say("B"), says("done")], idempotent=True)
    with pytest.raises(Killed):
        await scene.play(desk, DyingStore(await desk.attempt(2), at, after=True), attempt=2)
    result = await scene.play(desk, await desk.attempt(2), attempt=2)
    assert (result.failure, scene.model.calls, scene.effects.count("B")) == (None, 2, 1)
    assert [entry.type for entry in (await desk.stored()).entries].count("leaf") == 1


async def test_a_retry_of_an_attempt_that_wrote_nothing_writes_the_first_message(desk: Desk) -> None:
    scene = Scene([says("done")])
    with pytest.raises(Killed):
        await scene.play(desk, DyingStore(await desk.attempt(), 0, after=True))
    result = await scene.play(desk, await desk.attempt(2), attempt=2)
    assert result.outputs["text"] == "done"
    assert [entry.type for entry in (await desk.stored()).entries] == ["message", "message"]


async def test_after_an_abort_the_model_is_asked_again(desk: Desk) -> None:
    hanging = HangingModel(says("I will"))
    task = AgentTask(desk.session, "Go.")
    running = asyncio.create_task(run_agent(task, await desk.attempt(), hanging, registry()))
    await hanging.begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    model = Model(says("done"))
    result = await run_agent(task, await desk.attempt(), model, registry())
    assert (result.failure, result.outputs["text"], result.outputs["turns"]) == (None, "done", 1)
    assert [message.role for message in model.requests[0].messages] == ["user"]


async def test_the_limits_count_what_earlier_processes_used(desk: Desk) -> None:
    model, tool = Model(say("A"), say("B"), say("C"), says("done")), ATool(idempotent=True)
    task = AgentTask(desk.session, "Go.", limits=Limits(turns=2))
    with pytest.raises(Killed):
        await run_agent(task, DyingStore(await desk.attempt(), 5, after=True), model, registry(tool))
    result = await run_agent(task, await desk.attempt(), model, registry(tool))
    assert result.failure is not None
    assert (result.failure.reason, result.outputs["turns"], model.calls) == ("TurnLimit", 2, 2)


async def test_the_time_between_two_processes_is_not_worked(desk: Desk) -> None:
    scene = Scene([say("A"), says("done")], idempotent=True)
    with pytest.raises(Killed):
        await scene.play(desk, DyingStore(await desk.attempt(), 3, after=True))
    await scene.play(desk, await desk.attempt())
    tree = await SessionTree.open(await desk.attempt(), desk.session)
    entries = tree.branch()
    first, second = entries[1].at - entries[0].at, entries[3].at - entries[2].at
    assert entries[2].attempt != entries[1].attempt
    assert worked(tree) == first + second


@pytest.mark.parametrize("at", ["open", "append user", "append assistant", "intend", "record", "append toolResult"])
async def test_a_superseded_process_ends_at_its_next_write_and_has_no_further_effect(desk: Desk, at: str) -> None:
    """A newer attempt opens just before the write; nothing of the old one follows it."""
    scene, events = Scene([say("A", "B"), says("done")]), Events()
    old = Superseding(await desk.attempt(), desk, at)
    tool = ATool()
    with pytest.raises(Superseded):
        await run_agent(AgentTask(desk.session, "Go."), old, scene.model, registry(tool), events)
    assert set(old.writes[old.writes.index(at) + 1 :]) <= {"intend"}  # of the other call, and refused as well
    assert events.names[-1:] != ["agent_end"]
    assert len(tool.calls) == {"record": 1, "append toolResult": 2}.get(at, 0)


class Superseding(DyingStore):
    """Before its first write of the given name, another attempt opens."""

    def __init__(self, store: AttemptStore, desk: Desk, name: str) -> None:
        super().__init__(store, FAR, after=False)
        self._desk = desk
        self._name = name

    async def before(self, name: str) -> None:
        if name == self._name:
            await self._desk.attempt()


def same(result: AgentResult, expected: AgentResult) -> bool:
    ours, theirs = dict(result.outputs), dict(expected.outputs)
    del ours["session"], theirs["session"]
    return ours == theirs and result.failure == expected.failure
