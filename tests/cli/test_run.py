"""`pilothouse run`: what it runs, what it says, and the status it ends with."""

import json
import re
from typing import Any

import pytest
import yaml

from tests.cli.command import WORKFLOW, Cli

ONE = "  steps: [{name: a, transform: {value: 1}}]"

PARAMS = """\
  params:
    - {name: text, type: string, default: x}
    - {name: count, type: integer, default: 1}
    - {name: share, type: number, default: 0.5}
    - {name: flag, type: boolean, default: false}
    - {name: items, type: array, default: []}
    - {name: must, type: object, required: true}
  steps: [{name: all, transform: {value: "${{ params }}"}}]
  outputs: [{name: all, value: "${{ steps.all.outputs.value }}"}]
"""


def outputs(data: Any) -> dict[str, Any]:
    return {output["name"]: output["value"] for output in data["outputs"]}


def states(data: Any) -> dict[str, str]:
    return {step["path"]: step["state"] for step in data["steps"]}


async def test_text_tells_progress_beside_the_result(cli: Cli) -> None:
    spec = '  steps: [{name: a, transform: {value: [1, é]}}, {name: b, transform: {value: "x\\ny"}}]\n'
    spec += "  outputs: [{name: list, value: '${{ steps.a.outputs.value }}'},"
    spec += " {name: b, value: '${{ steps.b.outputs.value }}'}]"
    result = await cli("run", "-f", cli.workflow(spec))
    assert result.status == 0, result.err
    first, *rest = result.out.splitlines()
    assert first.startswith("w/1 Succeeded in ")
    assert rest == ["", "Outputs:", '  list: [1, "é"]', "  b:", "    x", "    y"]
    assert [line.split()[1:] for line in result.err.splitlines()] == [
        ["-", "RunStarted"],
        ["a", "StepStarted"],
        ["a", "StepSucceeded"],
        ["b", "StepStarted"],
        ["b", "StepSucceeded"],
        ["-", "RunSucceeded"],
    ]


async def test_data_is_the_same_as_json_and_as_yaml(cli: Cli) -> None:
    file = cli.workflow(ONE)
    made = await cli("run", "-f", file, "-o", "json")
    assert made.data["run"]["state"] == "Succeeded"
    assert made.data["run"]["progress"] == "1/1"
    assert states(made.data) == {"a": "Succeeded"}
    assert (await cli("get", "w/1", "-o", "json")).data == made.data
    shown = await cli("get", "w/1", "-o", "yaml")
    assert yaml.safe_load(shown.out) == made.data


async def test_params_keep_their_types(cli: Cli) -> None:
    given = {"text": "1", "count": 3, "share": 2, "flag": True, "items": [1, "é"], "must": {"a": None}}
    options = [f"--param={name}={json.dumps(value)}" for name, value in given.items() if name != "text"]
    result = await cli("run", "-f", cli.workflow(PARAMS), "-o", "json", "-p", "text=1", *options)
    assert outputs(result.data) == {"all": given}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ((), "param `must` (object) needs a value"),
        (("must={}", "count=99999999999999999999"), "is an integer beyond 64 bits"),
        (("must",), "--param must: write it as NAME=VALUE"),
    ],
)
async def test_a_wrong_param_is_refused_and_nothing_runs(cli: Cli, options: tuple[str, ...], says: str) -> None:
    given = [f"--param={option}" for option in options]
    result = await cli("run", "-f", cli.workflow(PARAMS), *given)
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("pilothouse: ")
    assert says in result.err


async def test_of_several_workflows_one_is_chosen_by_name(cli: Cli) -> None:
    files = ["-f", cli.workflow(ONE, "one"), "-f", cli.workflow(ONE, "two")]
    asked = await cli("run", *files)
    assert (asked.status, asked.err) == (
        2,
        "pilothouse: the files hold several Workflows; choose one with --workflow: one, two\n",
    )
    chosen = await cli("run", *files, "--workflow", "two", "-o", "json")
    assert (chosen.status, chosen.data["workflow"]) == (0, "two")


async def test_a_workflow_and_its_secret_come_from_standard_input(cli: Cli) -> None:
    spec = "  steps: [{name: a, runCommand: {command: [sh, -c, 'test \"$S\" = hush'], env: [%s]}}]"
    env = "{name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}"
    text = WORKFLOW % ("w", spec % env)
    text += "---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: hush}\n"
    result = await cli("run", "-f", "-", stdin=text)
    assert result.status == 0, result.out


@pytest.mark.feature("B43")
async def test_a_failing_step_fails_the_run_with_its_code_and_last_words(cli: Cli) -> None:
    result = await cli(
        "run", "-f", cli.workflow("  steps: [{name: a, runCommand: {command: [sh, -c, 'echo why >&2; exit 3']}}]")
    )
    assert result.status == 1
    assert "w/1 Failed in " in result.out
    assert "F-EXE step `a` failed: the command ended with exit code 3: why" in result.out
    assert "a                 StepFailed      F-EXE the command ended with exit code 3: why" in result.err


POLICY = """\
  failurePolicy: %s
  steps:
    - {name: bad, runCommand: {command: ["false"]}}
    - {name: late, needs: [other], transform: {value: 1}}
    - {name: after, needs: [bad], transform: {value: 1}}
    - {name: other, runCommand: {command: [sleep, "0.5"]}}
"""


@pytest.mark.feature("B43")
@pytest.mark.parametrize(("policy", "late"), [("FailFast", "Omitted"), ("FinishAll", "Succeeded")])
async def test_the_failure_policy_decides_on_what_has_not_begun(cli: Cli, policy: str, late: str) -> None:
    result = await cli("run", "-f", cli.workflow(POLICY % policy), "-o", "json")
    assert result.status == 1
    assert states(result.data) == {"bad": "Failed", "late": late, "after": "Omitted", "other": "Succeeded"}


HANDLED = """\
  steps:
    - {name: bad, runCommand: {command: ["false"]}}
    - {name: told, transform: {value: "${{ 'it ' + steps.bad.state }}"}}
    - name: pick
      conditional: {if: steps.bad.state == 'Failed', then: [yes-side], else: [no-side]}
    - {name: yes-side, transform: {value: 1}}
    - {name: no-side, transform: {value: 2}}
    - {name: never, when: "false", transform: {value: 3}}
    - {name: joined, needs: [no-side, never], transform: {value: 4}}
  outputs: [{name: told, value: "${{ steps.told.outputs.value }}"}]
"""


async def test_a_failure_that_is_read_is_handled_and_skipped_branches_do_not_stop_what_follows(cli: Cli) -> None:
    result = await cli("run", "-f", cli.workflow(HANDLED), "-o", "json")
    assert result.status == 0
    assert outputs(result.data) == {"told": "it Failed"}
    skipped = {name for name, state in states(result.data).items() if state == "Skipped"}
    assert skipped == {"no-side", "never"}
    assert states(result.data)["joined"] == "Succeeded"


async def test_a_failed_step_is_tried_again_after_its_delay(cli: Cli) -> None:
    command = f"cd {cli.folder}; echo x >> tries; test $(wc -l < tries) = 3"
    spec = "  steps: [{name: a, retry: {attempts: 3, delay: 200ms, jitter: false},"
    spec += " runCommand: {command: [sh, -c, '%s']}}]"
    result = await cli("run", "-f", cli.workflow(spec % command), "-o", "json")
    assert result.status == 0, result.err
    assert result.data["steps"][0]["attempts"] == 3
    events = [json.loads(line) for line in (await cli("events", "w", "-o", "json")).out.splitlines()]
    retries = [event["data"] for event in events if event["type"] == "StepRetrying"]
    assert [retry["delaySeconds"] for retry in retries] == [0.2, 0.4]
    assert "in 0.2s after F-EXE the command ended with exit code 1" in result.err
    assert "a                 StepStarted     attempt 3" in result.err


@pytest.mark.parametrize(
    ("where", "says"),
    [("timeout", "the command reached the step's timeout"), ("deadline", "the run reached its deadline")],
)
async def test_time_limits_end_commands_and_the_run(cli: Cli, where: str, says: str) -> None:
    step = "{name: a, %s runCommand: {command: [sleep, '60']}}"
    spec = f"  steps: [{step % ('timeout: 1s,' if where == 'timeout' else '')}]"
    result = await cli("run", "-f", cli.workflow(spec + ("\n  deadline: 1s" if where == "deadline" else "")))
    assert result.status == 1
    assert "F-TMO" in result.out
    assert says in result.out + result.err


async def test_a_missing_secret_is_named_with_what_to_do(cli: Cli) -> None:
    spec = "  steps: [{name: a, runCommand: {command: [ls], env: [%s]}}]"
    env = "{name: S, valueFrom: {secretKeyRef: {name: gone, key: k}}}"
    result = await cli("run", "-f", cli.workflow(spec % env))
    assert result.status == 1
    assert "F-ENV step `a` failed: there is no Secret `gone`; add it to the files of the run" in result.out


async def test_invalid_files_run_nothing(cli: Cli) -> None:
    result = await cli("run", "-f", cli.workflow("  steps: [{name: a, when: steps.b.state, transform: {value: 1}}]"))
    assert (result.status, result.out) == (2, "")
    assert "nothing was run" in result.err
    assert "spec.steps[0].when: there is no step `b`" in result.err
    assert (await cli("get")).out == "no runs in namespace default\n"


async def test_a_run_is_in_the_namespace_of_its_workflow(cli: Cli) -> None:
    steps = '  steps: [{name: a, transform: {value: "${{ run.namespace }}"}}]\n'
    outputs = '  outputs: [{name: said, value: "${{ steps.a.outputs.value }}"}]'
    text = cli.text(cli.workflow(steps + outputs)).replace("{name: w}", "{name: w, namespace: team-b}")
    ended = await cli("run", "-f", cli.file(text), "-o", "json")
    assert (ended.data["namespace"], ended.data["outputs"]) == ("team-b", [{"name": "said", "value": "team-b"}])
    assert "w/1" in (await cli("get", "-n", "team-b")).out
    assert "no runs" in (await cli("get")).out
    odd = await cli("get", "-n", "Bad NS")
    assert (odd.status, "a namespace is at most 63" in odd.err) == (2, True)


async def test_a_name_that_is_to_be_generated_is_generated(cli: Cli) -> None:
    text = cli.text(cli.workflow("  steps: [{name: a, transform: {value: 1}}]")).replace(
        "{name: w}", "{generateName: w-}"
    )
    ended = await cli("run", "-f", cli.file(text), "-o", "json")
    assert re.fullmatch("w-[0-9a-f]{5}", ended.data["workflow"])
    assert (await cli("describe", ended.data["workflow"])).status == 0


async def test_a_param_that_is_no_text_is_refused_before_anything_runs(cli: Cli) -> None:
    workflow = cli.workflow("  params: [{name: who}]\n  steps: [{name: a, transform: {value: 1}}]")
    refused = await cli("run", "-f", workflow, "--param", "who=\udcff")
    assert (refused.status, "--param who: the value is no valid text" in refused.err) == (2, True)
    assert "no runs" in (await cli("get")).out


async def test_a_param_is_given_once(cli: Cli) -> None:
    workflow = cli.workflow("  params: [{name: m}]\n  steps: [{name: a, transform: {value: 1}}]")
    refused = await cli("run", "-f", workflow, "--param", "m=1", "--param", "m=2")
    assert (refused.status, "--param m=2: `m` has a value already" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ('"${{ params.part }}${{ params.part }}${{ params.part }}"', "argument 1 takes more than 131,071 bytes"),
        (", ".join(['"${{ params.part }}${{ params.part }}"'] * 12), "are allowed; pass large values as files"),
    ],
)
async def test_arguments_that_no_process_can_be_given_say_what_to_do(cli: Cli, value: str, says: str) -> None:
    params = f"  params: [{{name: part, default: {'p' * 60_000}}}]\n"
    steps = f"  steps: [{{name: a, runCommand: {{command: [echo, {value}]}}}}]"
    ended = await cli("run", "-f", cli.workflow(params + steps), "-o", "json")
    [step] = ended.data["steps"]
    assert (ended.status, step["failure"]["code"]) == (1, "F-INP")
    assert says in step["failure"]["message"]
