"""Reading a document: each defect gets one message that says where it is and what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.api.manifest import ManifestError, load
from pilothouse.api.workflow import Step
from tests.api.samples import agent, steps, workflow

RUN = {"command": ["true"]}
TIMEOUT = "spec.steps[0].timeout: must be a string like 90s, 5m, 1h30m or 500ms; found "
STEP_FIELDS = [str(field.alias) for field in Step.model_fields.values()]
VALUE = "spec.steps[0].transform.value: "


def problems(document: object) -> list[str]:
    with pytest.raises(ManifestError) as error:
        load(document)
    return [str(problem) for problem in error.value.problems]


def in_step(**fields: Any) -> dict[str, Any]:
    return steps({"name": "a", "runCommand": RUN} | fields)


def transform(value: object) -> dict[str, Any]:
    return steps({"name": "a", "transform": {"value": value}})


CASES: list[tuple[object, list[str]]] = [
    # unknown fields
    (
        steps({"name": "a", "runCommand": {"comand": ["x"]}}),
        ["spec.steps[0].runCommand.comand: unknown field; did you mean `command`?"],
    ),
    (
        steps({"name": "a", "runComand": RUN}),
        ["spec.steps[0].runComand: unknown field; did you mean `runCommand`?"],
    ),
    (
        in_step(retry={"max_delay": "1m"}),
        ["spec.steps[0].retry.max_delay: unknown field; did you mean `maxDelay`?"],
    ),
    (in_step(run_command=RUN), ["spec.steps[0].run_command: unknown field; did you mean `runCommand`?"]),
    (in_step(zebra=1), ["spec.steps[0].zebra: unknown field; known here: " + ", ".join(STEP_FIELDS)]),
    (
        steps({"name": "a", "transform": {"values": 1, "zebra": 1}}),
        [
            "spec.steps[0].transform.values: unknown field; did you mean `value`?",
            "spec.steps[0].transform.zebra: unknown field; known here: value",
        ],
    ),
    (in_step(args=[]), ["spec.steps[0].args: unknown field; it belongs into `runCommand` or `executeCode`"]),
    (agent(baseURL="x"), ["spec.baseURL: unknown field; it belongs into `model`"]),
    (
        agent(model={"provider": "OpenAI", "name": "m", "baseUrl": "http://a"}),
        ["spec.model.baseUrl: unknown field; did you mean `baseURL`?"],
    ),
    (workflow() | {"sepc": {}}, ["sepc: unknown field; did you mean `spec`?"]),
    # missing and too many
    (steps({"name": "a", "runCommand": {}}), ["spec.steps[0].runCommand.command: is required"]),
    (steps(), ["spec.steps: must have at least 1 entry; found 0"]),
    (
        workflow(steps=[{"name": f"a{n}", "transform": {"value": n}} for n in range(257)]),
        ["spec.steps: must have at most 256 entries; found 257"],
    ),
    (
        steps(*[{"name": "a", "transform": {"value": 1}}] * 2),
        ["spec.steps: each name must differ; `a` stands at [0] and [1]"],
    ),
    (in_step(needs=["b", "b"]), ["spec.steps[0].needs: each entry must differ; `b` stands at [0] and [1]"]),
    # types
    (
        in_step(timeout="5 minutes"),
        [TIMEOUT + '"5 minutes"'],
    ),
    (in_step(timeout=""), [TIMEOUT + '""']),
    (
        in_step(timeout=90),
        [TIMEOUT + "90 (quote it)"],
    ),
    (in_step(idempotent="yes"), ['spec.steps[0].idempotent: must be true or false; found "yes"']),
    (in_step(retry={"attempts": "3"}), ['spec.steps[0].retry.attempts: must be an integer; found "3"']),
    (in_step(retry={"attempts": True}), ["spec.steps[0].retry.attempts: must be an integer; found true"]),
    (in_step(retry={"attempts": 0}), ["spec.steps[0].retry.attempts: must be at least 1; found 0"]),
    (in_step(retry={"backoffFactor": 0.5}), ["spec.steps[0].retry.backoffFactor: must be at least 1; found 0.5"]),
    (in_step(retry={"attempts": 101}), ["spec.steps[0].retry.attempts: must be at most 100; found 101"]),
    (in_step(retry=[]), ["spec.steps[0].retry: must be a mapping; found a list"]),
    (in_step(runCommand={"command": "ls -l"}), ['spec.steps[0].runCommand.command: must be a list; found "ls -l"']),
    (
        in_step(runCommand={"command": ["a", 3, None, {}]}),
        [
            "spec.steps[0].runCommand.command[1]: must be a string; found 3 (quote it)",
            "spec.steps[0].runCommand.command[2]: must be a string; found null",
            "spec.steps[0].runCommand.command[3]: must be a string; found a mapping",
        ],
    ),
    (
        in_step(runCommand={"command": ["\ud800"]}),
        [r'spec.steps[0].runCommand.command[0]: must be text without lone surrogates; found "\ud800"'],
    ),
    (in_step(when=None), ["spec.steps[0].when: must not be null: give a value or leave it out"]),
    (in_step(when="${{ true }}"), ["spec.steps[0].when: must be bare CEL: write it without ${{ }}"]),
    (
        in_step(name="Build_1"),
        ['spec.steps[0].name: must start with a lower-case letter, then letters, digits and -; found "Build_1"'],
    ),
    (
        workflow(failurePolicy="failfast"),
        ['spec.failurePolicy: must be one of FailFast, FinishAll; found "failfast"; did you mean `FailFast`?'],
    ),
    (
        agent(pod={"resources": {"requests": {"cpu": 1.5}}}),
        ["spec.pod.resources.requests.cpu: must be a quantity like 100m, 2 or 512Mi; found 1.5 (quote it)"],
    ),
    (
        workflow() | {"metadata": {"name": "a", "labels": {"a.b/c": 1}}},
        ["metadata.labels['a.b/c']: must be a string; found 1 (quote it)"],
    ),
    (
        workflow() | {"metadata": {"name": "Release_1"}},
        ['metadata.name: must be an object\'s name: lower-case letters, digits, - and .; found "Release_1"'],
    ),
    (workflow() | {"metadata": {}}, ["metadata: at least one of name, generateName must be set"]),
    # keys that YAML does not read as text
    (
        in_step(runCommand=RUN | {True: 1}),
        ["spec.steps[0].runCommand: has the key true, which is not a string: quote it"],
    ),
    (
        in_step(pod={"nodeSelector": {1: "a"}}),
        ["spec.steps[0].pod.nodeSelector: has the key 1, which is not a string: quote it"],
    ),
    # arbitrary JSON that is none
    (
        transform({1: 2}),
        [VALUE + "has the key 1, which is not a string: quote it"],
    ),
    (
        transform([float("nan")]),
        [VALUE + "holds nan, which JSON does not have"],
    ),
    (
        transform(2**63),
        [VALUE + "holds 9223372036854775808, which does not fit into 64 bits: quote it"],
    ),
    (
        transform("\ud800"),
        [VALUE + "holds a lone surrogate, which is not text"],
    ),
    (
        transform({"a": b"x"}),
        [VALUE + "holds a bytes, which JSON does not have: quote it"],
    ),
    # the document as a whole
    (None, ["must be a mapping with apiVersion, kind and spec; found null"]),
    (["a"], ["must be a mapping with apiVersion, kind and spec; found a list"]),
    ({}, ["apiVersion: must be pilothouse.dev/v1alpha1; found null"]),
    (workflow() | {"apiVersion": "v1"}, ['apiVersion: must be pilothouse.dev/v1alpha1; found "v1"']),
    (
        workflow() | {"kind": "workflow"},
        ['kind: must be one of Agent, Workflow, Pack, ToolApproval; found "workflow"; did you mean `Workflow`?'],
    ),
    (workflow() | {"kind": ["x"]}, ["kind: must be one of Agent, Workflow, Pack, ToolApproval; found a list"]),
    (workflow() | {"spec": None}, ["spec: must be a mapping; found null"]),
    (
        transform("x" * 256 * 1024),
        ["spec: is larger than 256 KiB"],
    ),
]


@pytest.mark.parametrize(("document", "expected"), CASES)
def test_a_defect_gets_one_message(document: object, expected: list[str]) -> None:
    assert problems(document) == expected


def test_every_defect_of_a_document_is_told_at_once() -> None:
    document = workflow(suspend="no", deadline="soon", steps=[{"name": "a", "runCommand": {"command": [1]}}])
    document["metadata"] = {"name": "X"}
    assert [line.split(":")[0] for line in problems(document)] == [
        "metadata.name",
        "spec.steps[0].runCommand.command[0]",
        "spec.deadline",
        "spec.suspend",
    ]


def test_of_thousands_of_defects_the_first_hundred_are_told() -> None:
    lines = problems(in_step(**{f"x{n}": 1 for n in range(20_000)}))
    assert len(lines) == 100
    assert lines[0].startswith("spec.steps[0].x0: unknown field")


def test_a_value_in_a_message_is_short_and_on_one_line() -> None:
    (line,) = problems(in_step(timeout="\x1b[31m\n" + "x" * 1000))
    assert line.isprintable()
    assert len(line) < 140


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


def test_deep_nesting_is_refused_and_64_levels_are_not() -> None:
    load(transform(nested(63)))
    message = VALUE + "is nested deeper than 64 levels"
    assert problems(transform(nested(64))) == [message]


def test_very_deep_nesting_does_not_crash() -> None:
    message = VALUE + "is nested deeper than 64 levels"
    assert problems(transform(nested(100_000))) == [message]


def test_a_few_lines_that_stand_for_a_huge_value_are_refused() -> None:
    value: object = "x"
    for _ in range(60):
        value = [value, value]
    assert problems(transform(value)) == ["spec: is larger than 256 KiB"]
    status = {"outputs": [{"name": "a", "value": value}]}
    assert problems(workflow() | {"status": status}) == ["status: is larger than 256 KiB"]


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    assert problems(transform(value)) == ["spec: is larger than 256 KiB"]


def test_a_null_is_a_value_where_any_json_goes() -> None:
    loaded = load(transform(None))
    assert loaded.manifest()["spec"]["steps"][0]["transform"] == {"value": None}
