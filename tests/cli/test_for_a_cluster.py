"""What a manifest says for a cluster, and what `pilothouse run` makes of it."""

import pytest

from tests.cli.command import Cli

COMMAND = "{name: b, runCommand: {command: [ls]}}"


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (
            "  steps: [{name: a, transform: {value: 1}}, {name: b, runCommand: {image: busybox, command: [ls]}}]",
            "spec.steps[1].runCommand.image: an image runs on a cluster only; leave it out to run here",
        ),
        (
            f"  steps: [{COMMAND[:-1]}, pod: {{env: [{{name: A, value: x}}]}}}}]",
            "spec.steps[0].pod.env: variables of a Pod are for a cluster only; leave them out to run here",
        ),
        (
            f"  steps: [{COMMAND[:-1]}, pod: {{volumes: [{{name: a, mountPath: /a, emptyDir: {{}}}}]}}}}]",
            "spec.steps[0].pod.volumes: volumes are mounted on a cluster only; leave them out to run here",
        ),
        (
            f"  suspend: true\n  steps: [{COMMAND}]",
            "spec.suspend: a run of this machine begins at once; leave it out to run here",
        ),
        (
            f"  shutdown: Stop\n  steps: [{COMMAND}]",
            "spec.shutdown: nothing runs while it is set; leave it out, and end a run with cancel",
        ),
    ],
    ids=["image", "pod.env", "pod.volumes", "suspend", "shutdown"],
)
async def test_what_only_a_cluster_can_do_is_refused_before_anything_runs(cli: Cli, spec: str, says: str) -> None:
    file = cli.workflow(spec)
    assert (await cli("validate", "-f", file)).status == 0, "the file is right for a cluster"
    refused = await cli("run", "-f", file)
    assert refused.status == 2
    assert refused.err.splitlines() == ["pilothouse: nothing was run", says]
    assert "no runs" in (await cli("get")).out


async def test_an_agent_s_variables_and_volumes_are_for_a_cluster_only(cli: Cli) -> None:
    agent = """\
apiVersion: pilothouse.dev/v1alpha1
kind: Agent
metadata: {name: helper}
spec:
  model: {provider: Scripted, script: [{text: done}]}
  pod: {env: [{name: A, value: x}], volumes: [{name: a, mountPath: /a, emptyDir: {}}]}
---
"""
    workflow = cli.text(cli.workflow("  steps: [{name: a, invokeAgent: {agentRef: {name: helper}}}]"))
    refused = await cli("run", "-f", cli.file(agent + workflow))
    assert refused.status == 2
    assert refused.err.splitlines() == [
        "pilothouse: nothing was run",
        "Agent `helper`: spec.pod.env: variables of a Pod are for a cluster only; leave them out to run here",
        "Agent `helper`: spec.pod.volumes: volumes are mounted on a cluster only; leave them out to run here",
    ]


async def test_where_and_how_large_a_pod_would_be_means_nothing_here(cli: Cli) -> None:
    pod = "{resources: {limits: {memory: 1Mi}}, nodeSelector: {disk: ssd}, serviceAccountName: nobody}"
    steps = f"  steps: [{{name: a, pendingTimeout: 1s, runCommand: {{command: [echo, hi]}}, pod: {pod}}}]"
    ended = await cli("run", "-f", cli.workflow(f"  suspend: false\n{steps}"))
    assert ended.status == 0, ended.err
