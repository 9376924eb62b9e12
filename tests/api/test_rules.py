"""The rules over several fields: the CEL that the API server runs and the Python check say the same."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_strings  # type: ignore[import-untyped]

from pilothouse.api.crd import KINDS
from pilothouse.api.manifest import ManifestError, load
from tests.api.samples import agent, full, steps, workflow
from tests.api.test_crd import FILES, nodes, root_of

RULES = sorted(
    {
        (rule["rule"], rule["message"])
        for path in FILES
        for _, node in nodes(root_of(path))
        for rule in node.get("x-kubernetes-validations", [])
    }
)
ENVIRONMENT = cel.NewEnv(
    variables={"self": cel.Type.DYN, "oldSelf": cel.Type.DYN}, extensions=[ext_strings.ExtStrings()]
)


@cache
def compiled(rule: str) -> cel.Expression:
    return ENVIRONMENT.compile(rule)


def holds(rule: str, value: object, old: object = None) -> bool:
    result = compiled(rule).eval(data={"self": value, "oldSelf": old}).plain_value()
    assert isinstance(result, bool), result
    return result


def broken(document: dict[str, Any]) -> set[str]:
    """The messages of the CEL rules that an object breaks on creation."""
    kind = next(kind for kind in KINDS if kind.name == document["kind"])
    (path,) = [path for path in FILES if path.name == kind.file_name]
    return set(_broken(root_of(path), document))


def _broken(schema: dict[str, Any], value: Any) -> list[str]:
    if isinstance(value, list) and "items" in schema:
        return [message for item in value for message in _broken(schema["items"], item)]
    if not isinstance(value, dict) or "properties" not in schema:
        return []
    rules = schema.get("x-kubernetes-validations", [])
    own = [rule["message"] for rule in rules if "oldSelf" not in rule["rule"] and not holds(rule["rule"], value)]
    known = schema["properties"]
    return own + [message for name in value if name in known for message in _broken(known[name], value[name])]


@pytest.mark.parametrize("rule", [rule for rule, _ in RULES])
def test_a_rule_compiles(rule: str) -> None:
    assert compiled(rule).return_type().name().lower() == "bool"


@pytest.mark.parametrize("kind", [kind.name for kind in KINDS])
def test_a_full_object_breaks_no_rule(kind: str) -> None:
    assert broken(full(kind)) == set()


def approval(**spec: Any) -> dict[str, Any]:
    document = full("ToolApproval")
    undecided = {"request": document["spec"]["request"]}
    return {**document, "spec": undecided | spec}


def unknown_outcome(**spec: Any) -> dict[str, Any]:
    document = approval(**spec)
    document["spec"]["request"]["kind"] = "OutcomeUnknown"
    return document


def _definition(**spec: Any) -> dict[str, Any]:
    return workflow() | {"spec": {"workflowRef": {"name": "b"}} | spec}


def _scripted(**call: Any) -> dict[str, Any]:
    return agent(model={"provider": "Scripted", "script": [{"toolCalls": [{"name": "a"} | call]}]})


def _mcp(**server: Any) -> dict[str, Any]:
    return {"mcp": {"name": "a"} | server}


def _command(**fields: Any) -> dict[str, Any]:
    return {"command": ["true"]} | fields


RUN = {"command": ["true"]}
EXISTING = {"provider": "OpenAI", "name": "m"}

BROKEN = [
    (steps({"name": "a"}), "exactly one of invokeAgent"),
    (steps({"name": "a", "runCommand": RUN, "transform": {"value": 1}}), "exactly one of invokeAgent"),
    (steps({"name": "a", "transform": {"value": 1}, "pod": {}}), "pod may be set only together"),
    (steps({"name": "a", "wait": {}}), "exactly one of duration, until, approval"),
    (steps({"name": "a", "wait": {"duration": "1s", "every": "1s"}}), "every may be set only together with until"),
    (steps({"name": "a", "parallel": {"items": "params.a"}}), "exactly one of block, workflowRef"),
    (steps({"name": "a", "subWorkflow": {"block": "b", "workflowRef": {"name": "c"}}}), "exactly one of block"),
    (steps({"name": "a", "validate": {"value": 1}}), "at least one of schema, expression"),
    (steps({"name": "a", "runCommand": _command(env=[{"name": "A"}])}), "exactly one of value, valueFrom"),
    (steps({"name": "a", "runCommand": _command(files=[{"path": "a"}])}), "exactly one of content, valueFrom"),
    (
        steps({"name": "a", "runCommand": _command(env=[{"name": "A", "valueFrom": {}}])}),
        "exactly one of secretKeyRef",
    ),
    (workflow(workflowRef={"name": "b"}), "exactly one of steps, workflowRef"),
    (_definition(onExit=[]), "blocks, params, outputs, onExit may not be set together with workflowRef"),
    (workflow(arguments=[{"name": "a", "value": 1}]), "arguments may be set only together with workflowRef"),
    (workflow() | {"metadata": {"name": "a" * 64}}, "metadata.name may have at most 63 characters"),
    (agent(tools=[{}]), "exactly one of builtin, mcp, agentRef"),
    (agent(tools=[{"builtin": "a", "agentRef": {"name": "b"}}]), "exactly one of builtin, mcp, agentRef"),
    (agent(tools=[_mcp()]), "exactly one of url, command"),
    (agent(tools=[_mcp(url="https://a", env=[])]), "env may be set only together with command"),
    (
        agent(tools=[_mcp(command=["b"], headers=[])]),
        "headers may be set only together with url",
    ),
    (_scripted(arguments={}, argumentsText="{"), "argumentsText may not be set together with arguments"),
    (agent(prompt={}), "exactly one of system, systemFrom"),
    (agent(model={"provider": "OpenAI"}), "name when it is not"),
    (agent(model={"provider": "Scripted"}), "script must be set when provider is Scripted"),
    (agent(model=EXISTING | {"script": [{"text": "a"}]}), "script must be set when provider is Scripted"),
    (agent(model={"provider": "Scripted", "script": [{}]}), "at least one of text"),
    (agent(model=EXISTING | {"provider": "Local", "api": "Responses"}), "api may be Responses only when provider"),
    (agent(model=EXISTING | {"provider": "Local", "baseURL": "http://a"}), "may not be set when provider is Local"),
    (agent(model=EXISTING | {"api": "Responses", "options": {"seed": 1}}), "options.seed may not be set"),
    (agent(model=EXISTING | {"provider": "Anthropic", "options": {"seed": 1}}), "options.seed may not be set"),
    (agent(model=EXISTING | {"api": "Responses", "options": {"stop": ["a"]}}), "options.stop may not be set"),
    (agent(sandbox={"isolation": "Isolated"}), "runtimeClassName must be set when isolation is Isolated"),
    (agent(sandbox={"network": []}), "network needs isolation"),
    (agent(compaction={}), "model.contextWindow must be set with compaction"),
    (agent(governance={"budget": {"cost": "1"}}), "model.prices must be set with governance.budget.cost"),
    (agent(limits={"doubleConfirmation": True}, outputs={"schema": {}}), "may not be set with outputs"),
    (agent(pod={"volumes": [{"name": "a", "mountPath": "/a"}]}), "exactly one of emptyDir"),
    (full("Pack") | {"spec": full("Pack")["spec"] | {"source": {}}}, "exactly one of configMap, oci, http, hub"),
    (approval(decidedBy="ann"), "decidedBy, digest, reason, result may be set only together with decision"),
    (approval(decision="Approved", result="x"), "result goes only with MarkDone"),
    (approval(decision="MarkDone", result="x"), "MarkDone needs a result"),
    (unknown_outcome(decision="MarkDone"), "MarkDone needs a result"),
    (approval() | {"metadata": {"name": "release-write-1f0c"}}, "the name must end in"),
]


@pytest.mark.parametrize(("document", "message"), BROKEN)
def test_the_server_and_the_file_reader_refuse_the_same(document: dict[str, Any], message: str) -> None:
    (refused,) = broken(document)
    assert message in refused
    with pytest.raises(ManifestError) as error:
        load(document)
    assert len(error.value.problems) == 1


ACCEPTED = [
    approval(),
    approval(decision="Denied", decidedBy="ann", reason="no"),
    unknown_outcome(decision="MarkDone", result=""),
    agent(sandbox={"isolation": "Isolated", "runtimeClassName": "gvisor"}),
    agent(model=EXISTING | {"contextWindow": 128_000}, compaction={}),
    agent(model=EXISTING | {"prices": {"input": "1", "output": "2"}}, governance={"budget": {"cost": "1.50"}}),
    agent(limits={"doubleConfirmation": False}, outputs={"schema": {}}),
    agent(model={"provider": "Scripted", "script": [{"text": "", "error": {"message": "gone"}}]}),
    agent(model=EXISTING | {"provider": "Anthropic", "options": {"stop": ["a"]}}),
    agent(model=EXISTING | {"options": {"seed": 1, "stop": ["a"]}}),
    agent(model=EXISTING | {"api": "Responses", "options": {"topP": 0.5}}),
    _definition(arguments=[]) | {"metadata": {"generateName": "a-"}},
]


@pytest.mark.parametrize("document", ACCEPTED)
def test_the_server_and_the_file_reader_accept_the_same(document: dict[str, Any]) -> None:
    load(document)
    named = document | {"metadata": {"name": "a"} | document["metadata"]}  # the server makes the name first
    assert broken(named) == set()


def test_every_rule_is_broken_by_a_case_or_is_about_a_change() -> None:
    met = {message for document, _ in BROKEN for message in broken(document)}
    assert {message for rule, message in RULES if "oldSelf" not in rule} == met


def test_a_request_never_changes() -> None:
    (rule,) = [rule for rule, message in RULES if message == "a request cannot change after creation"]
    before, after = approval()["spec"], approval()["spec"]
    assert holds(rule, after, before)
    after["request"]["arguments"] = '{"command":"rm"}'
    assert not holds(rule, after, before)


def test_a_decision_is_final_but_can_be_made() -> None:
    (rule,) = [rule for rule, message in RULES if message == "a decision is final"]
    undecided, decided = approval()["spec"], approval(decision="Denied", decidedBy="ann")["spec"]
    assert holds(rule, decided, undecided)
    assert not holds(rule, decided | {"decision": "Approved"}, decided)
    assert not holds(rule, decided | {"decidedBy": "bob"}, decided)
    assert not holds(rule, undecided, decided)
