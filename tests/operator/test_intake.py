"""From a Workflow as it was applied to a run, or to the verdict why there is none."""

import re
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from pilothouse.api.agent import Agent
from pilothouse.api.manifest import MAX_SPEC
from pilothouse.api.workflow import Workflow
from pilothouse.records.runs import NewRun
from pilothouse.workflows.expressions.evaluator import Evaluator
from pilothouse_operator.intake import Intake, NotNow, read, told
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import AGENTS, CONFIG_MAPS, WORKFLOWS, Resource
from pilothouse_operator.verdict import Standing
from tests.operator.desk import command, invocation
from tests.operator.fakekube import FakeKube

TENANT = UUID(int=1)
PROMPT: dict[str, Any] = {"prompt": {"systemFrom": {"configMapKeyRef": {"name": "prompts", "key": "p"}}}}
WORDS = {"valueFrom": {"configMapKeyRef": {"name": "words", "key": "w"}}}
READS = {"name": "a", "runCommand": {"command": ["env"], "env": [{"name": "W", **WORDS}]}}


class Scene:
    """A namespace and the intake."""

    def __init__(self, evaluator: Evaluator) -> None:
        self.kube = FakeKube()
        self.kube.add_namespace("team-a")
        self.intake = Intake(self.kube, evaluator)

    def put(self, resource: Resource, name: str, **body: Any) -> Object:
        given = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, **body}
        return self.kube.put(resource, "team-a", given)

    def agent(self, name: str = "scribe", **spec: Any) -> None:
        self.put(AGENTS, name, spec={"model": {"provider": "OpenAI", "name": "m"}, **spec})

    def workflow(self, *steps: dict[str, Any], **spec: Any) -> Workflow:
        found = read(self.put(WORKFLOWS, "hello", spec={"steps": list(steps) or [command("a")], **spec}))
        assert isinstance(found, Workflow)
        return found

    async def run(self, *steps: dict[str, Any], after: int = 0, **spec: Any) -> NewRun:
        return await self.intake.new_run(self.workflow(*steps, **spec), TENANT, after, {})

    async def refusal(self, *steps: dict[str, Any], **spec: Any) -> tuple[Standing, str, str]:
        with pytest.raises(NotNow) as not_now:
            await self.run(*steps, **spec)
        verdict = not_now.value.verdict
        return verdict.standing, verdict.reason, verdict.message


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with Evaluator() as evaluator:
        yield Scene(evaluator)


async def test_a_run_begins_with_all_that_it_will_ever_read(scene: Scene) -> None:
    scene.agent(**PROMPT)
    scene.agent("other")
    scene.put(CONFIG_MAPS, "prompts", data={"p": "Be brief.", "q": "unread"})
    scene.put(CONFIG_MAPS, "words", data={"w": "hush"})
    run = await scene.run(
        invocation("ask"), READS, params=[{"name": "n", "type": "integer", "default": 3}], deadline="1h"
    )
    assert run.closure["agents"].keys() == {"scribe"}
    assert run.closure["configMaps"] == {"prompts": {"p": "Be brief."}, "words": {"w": "hush"}}
    assert run.params == {"n": 3}
    assert run.deadline_seconds == 3600
    assert [(str(step.id), step.kind) for step in run.steps] == [("ask", "invokeAgent"), ("a", "runCommand")]
    assert (run.tenant, run.namespace, run.workflow) == (TENANT, "team-a", "hello")


async def test_a_run_is_one_however_often_it_is_made_and_the_next_one_another(scene: Scene) -> None:
    workflow = scene.workflow()
    first, again, second = [await scene.intake.new_run(workflow, TENANT, after, {}) for after in (0, 0, 1)]
    assert first.run == again.run != second.run
    assert first.key == second.key


async def test_no_secret_is_ever_read(scene: Scene) -> None:
    secret = {"valueFrom": {"secretKeyRef": {"name": "keys", "key": "k"}}}
    await scene.run({"name": "a", "runCommand": {"command": ["env"], "env": [{"name": "K", **secret}]}})
    assert {read.partition(" ")[2] for read in scene.kube.reads} <= {"agents", "configmaps"}


WAITS: list[tuple[str, dict[str, Any], str]] = [
    ("an Agent that is not there", invocation("ask"), "there is no Agent `scribe`"),
    ("a ConfigMap that is not there", READS, "there is no ConfigMap `words`"),
]


@pytest.mark.parametrize(("step", "message"), [each[1:] for each in WAITS], ids=[each[0] for each in WAITS])
async def test_what_may_yet_come_is_waited_for(scene: Scene, step: dict[str, Any], message: str) -> None:
    standing, reason, said = await scene.refusal(step)
    assert (standing, reason) == (Standing.WAITING, "ReferenceNotFound")
    assert message in said
    assert "spec.steps[0]" in said


async def test_a_config_map_without_the_key_is_waited_for(scene: Scene) -> None:
    scene.put(CONFIG_MAPS, "words", data={"v": "x"})
    standing, reason, said = await scene.refusal(READS)
    assert (standing, reason) == (Standing.WAITING, "ReferenceNotFound")
    assert "ConfigMap `words` has no key `w`" in said


async def test_a_config_map_without_any_data_is_waited_for(scene: Scene) -> None:
    scene.put(CONFIG_MAPS, "words")
    assert (await scene.refusal(READS))[1] == "ReferenceNotFound"


async def test_an_agent_whose_config_map_is_missing_is_waited_for(scene: Scene) -> None:
    scene.agent(**PROMPT)
    standing, _, said = await scene.refusal(invocation("ask"))
    assert standing is Standing.WAITING
    assert "Agent `scribe`" in said
    assert "prompts" in said


@pytest.mark.parametrize(
    "spec",
    [{"sandbox": {"isolation": "Networked"}}, {"tools": [{"builtin": "teleport"}]}, {"model": {"provider": "X"}}],
)
async def test_an_agent_that_cannot_be_run_may_yet_be_mended(scene: Scene, spec: dict[str, Any]) -> None:
    scene.agent(**spec)
    standing, reason, said = await scene.refusal(invocation("ask"))
    assert (standing, reason) == (Standing.WAITING, "ReferenceNotFound")
    assert "Agent `scribe`" in said


def asking(*names: str) -> dict[str, Any]:
    return {"tools": [{"agentRef": {"name": name}} for name in names]}


async def test_agents_that_can_be_asked_are_frozen_with_the_run(scene: Scene) -> None:
    scene.agent(**asking("a", "scribe"))
    scene.agent("a", **asking("b"))
    scene.agent("b", **PROMPT)
    scene.agent("idle")
    scene.put(CONFIG_MAPS, "prompts", data={"p": "Be brief."})
    run = await scene.run(invocation("ask"))
    assert sorted(run.closure["agents"]) == ["a", "b", "scribe"]
    assert run.closure["configMaps"] == {"prompts": {"p": "Be brief."}}


BROKEN: list[tuple[str, dict[str, Any], str]] = [
    ("is not there", {}, "Agent `a`: spec.tools[0].agentRef.name: there is no Agent `b`"),
    ("has an unknown tool", {"tools": [{"builtin": "teleport"}]}, "Agent `b`: spec.tools[0].builtin"),
    ("lacks its prompt", PROMPT, "Agent `b`: spec.prompt.systemFrom.configMapKeyRef.name: there is no ConfigMap"),
]


@pytest.mark.parametrize(("spec", "message"), [each[1:] for each in BROKEN], ids=[each[0] for each in BROKEN])
async def test_an_agent_waits_for_one_that_it_can_ask_as_its_workflow_does(
    scene: Scene, spec: dict[str, Any], message: str
) -> None:
    scene.agent("a", **asking("b"))
    if spec:
        scene.agent("b", **spec)
    scene.agent(**asking("a"))
    standing, reason, said = await scene.refusal(invocation("ask"))
    assert (standing, reason) == (Standing.WAITING, "ReferenceNotFound")
    assert message in said
    scribe = read(await scene.kube.get(AGENTS, "team-a", "scribe") or {})
    assert isinstance(scribe, Agent)
    with pytest.raises(NotNow, match=re.escape(message)) as not_now:
        await scene.intake.check_agent(scribe)
    assert not_now.value.verdict.standing is Standing.WAITING


async def test_agents_that_ask_one_another_can_be_run(scene: Scene) -> None:
    scene.agent("a", **asking("scribe"))
    scene.agent(**asking("a", "scribe"))
    scribe = read(await scene.kube.get(AGENTS, "team-a", "scribe") or {})
    assert isinstance(scribe, Agent)
    await scene.intake.check_agent(scribe)


STALLS: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("an unknown need", command("a", needs=["b"]), {}, "InvalidSpec"),
    ("a broken expression", {"name": "a", "transform": {"value": "${{ 1 + }}"}}, {}, "InvalidSpec"),
    (
        "a param without a value",
        command("a"),
        {"params": [{"name": "n", "type": "integer", "required": True}]},
        "InvalidSpec",
    ),
    ("a kind of step to come", {"name": "a", "httpRequest": {"url": "https://example.com"}}, {}, "NotSupported"),
    ("a field to come", command("a"), {"schedule": {"cron": "* * * * *"}}, "NotSupported"),
    ("both", command("a", needs=["b"]), {"schedule": {"cron": "* * * * *"}}, "InvalidSpec"),
]


@pytest.mark.parametrize(("step", "spec", "expected"), [each[1:] for each in STALLS], ids=[each[0] for each in STALLS])
async def test_what_only_its_user_can_mend_stalls(
    scene: Scene, step: dict[str, Any], spec: dict[str, Any], expected: str
) -> None:
    standing, reason, said = await scene.refusal(step, **spec)
    assert (standing, reason) == (Standing.STALLED, expected)
    assert "spec." in said


async def test_what_is_wrong_is_told_before_what_is_missing(scene: Scene) -> None:
    assert (await scene.refusal(READS, command("b", needs=["c"])))[:2] == (Standing.STALLED, "InvalidSpec")


def bare(spec: Any, **metadata: Any) -> dict[str, Any]:
    body = {"name": "hello", "namespace": "team-a", "uid": "u", **metadata}
    return {"apiVersion": "pilothouse.dev/v1alpha1", "kind": "Workflow", "metadata": body, "spec": spec}


def test_an_object_is_read_whatever_its_status_says() -> None:
    found = read(bare({"steps": [command("a")]}) | {"status": {"conditions": "nonsense"}})
    assert isinstance(found, Workflow)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"steps": [command("a")], "description": "x" * (MAX_SPEC + 1)}, "SpecTooLarge"),
        ({"steps": [command("a")], "surprise": 1}, "InvalidSpec"),
        ({"steps": []}, "InvalidSpec"),
        ({}, "InvalidSpec"),
        (None, "InvalidSpec"),
    ],
)
def test_what_the_schema_let_pass_stalls(spec: Any, reason: str) -> None:
    with pytest.raises(NotNow) as not_now:
        read(bare(spec))
    assert (not_now.value.verdict.standing, not_now.value.verdict.reason) == (Standing.STALLED, reason)


def test_a_few_problems_are_told_and_the_others_counted() -> None:
    with pytest.raises(NotNow) as not_now:
        read(bare({f"field{number}": 1 for number in range(20)} | {"steps": [command("a")]}))
    message = not_now.value.verdict.message
    assert message.count("unknown field") == 5
    assert message.endswith("; and 15 more")
    assert told([]) == ""
