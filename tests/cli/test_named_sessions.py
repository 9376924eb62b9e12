"""`invokeAgent.session`: one conversation of several steps and runs."""

from tests.cli.command import Cli

MATE = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: mate}
spec: {model: {provider: Scripted, script: [{text: one}, {text: two}, {text: three}, {text: four}]}}
---
apiVersion: pilothouse.dev/v1alpha1
kind: Workflow
metadata: {name: w}
spec:
  steps:
    - {name: a, invokeAgent: {agentRef: {name: mate}, message: Count., session: log}}
    - {name: b, invokeAgent: {agentRef: {name: mate}, message: Count., session: log}}
    - {name: c, invokeAgent: {agentRef: {name: mate}, message: Count.}}
  outputs:
    - {name: a, value: "${{ steps.a.outputs.text }}"}
    - {name: b, value: "${{ steps.b.outputs.text }}"}
    - {name: c, value: "${{ steps.c.outputs.text }}"}
    - {name: sessions, value: "${{ [steps.a.outputs.session, steps.b.outputs.session, steps.c.outputs.session] }}"}
"""


async def test_steps_that_name_a_session_take_turns_and_later_runs_go_on_with_it(cli: Cli) -> None:
    file = cli.file(MATE)
    seen = []
    for _ in range(2):
        result = await cli("run", "-f", file, "-o", "json")
        assert result.status == 0, result.err
        seen.append({output["name"]: output["value"] for output in result.data["outputs"]})
    assert [sorted([run["a"], run["b"]]) for run in seen] == [["one", "two"], ["four", "three"]]
    assert [run["c"] for run in seen] == ["one", "one"], "a step that names none has one of its own"
    (first, second, own), again = seen[0]["sessions"], seen[1]["sessions"]
    assert first == second == again[0] == again[1]
    assert len({first, own, again[2]}) == 3
