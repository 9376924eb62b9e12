"""A workflow from `kubectl apply` to its end, as its user sees it."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.release import Release
from e2e.rows import Rows
from e2e.workflow import Applied, shell, workflow

EXAMPLE = Path("examples/release-notes.yaml")
LARGE = 200_000
"""Bytes of an output that no status holds, nor a row."""

POD = {
    "resources": {"requests": {"cpu": "20m", "memory": "48Mi"}, "limits": {"memory": "96Mi"}},
    "env": [{"name": "POD", "value": "from the block"}],
    "volumes": [{"name": "texts", "mountPath": "/texts", "configMap": {"name": "texts"}, "readOnly": True}],
}
MEMORY_LIMIT = "cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes"
REACHES = """
import os, socket
def may(make):
    try:
        make()
    except OSError as error:
        return type(error).__name__
    return "yes"
print("socket", may(lambda: socket.socket(socket.AF_INET)))
print("token", may(lambda: os.stat("/var/run/secrets/kubernetes.io/serviceaccount/token")))
"""


@pytest.fixture(scope="module")
def mine(release: Release, kubectl: Kubectl, shared_namespace: str) -> Kubectl:
    return kubectl.within(shared_namespace)


@pytest.fixture(scope="module")
def example(mine: Kubectl) -> Applied:
    mine.apply(EXAMPLE.read_text())
    return Applied(mine, "release-notes")


@pytest.fixture(scope="module")
def fails(mine: Kubectl) -> Applied:
    bad = shell("bad", "echo all is lost >&2; exit 3")
    return Applied.of(mine, workflow("fails", bad, shell("after", "true", needs=["bad"])))


@pytest.fixture(scope="module")
def widely(mine: Kubectl, our_image: str) -> Applied:
    """A workflow whose steps use all that a step of a Pod can use. They run at the same time."""
    mine.apply(_texts("ConfigMap", data={"plain": "a text"}))
    mine.apply(_texts("Secret", data={"hidden": base64.b64encode(b"a secret").decode()}))
    prints = "import os, sys; print(*sys.argv[1:], *(os.environ[name] for name in ('PLAIN', 'HIDDEN', 'LITERAL')))"
    theirs = "cat plain hidden/file given; echo '{\"answer\": 42}' > $PILOTHOUSE_OUTPUT"
    steps = [
        _command("ours", ["python", "-c", prints, "$(HOME)"], env=_ENV),
        _command("theirs", ["python", "-c", prints, "$(HOME)"], env=_ENV, image=our_image),
        _command("files", ["cat", "plain", "hidden/file", "given"], files=_FILES),
        _command("layered", ["sh", "-c", theirs], files=_FILES, image=our_image),
        shell("block", f'{MEMORY_LIMIT}; echo "$POD"; cat /texts/plain', pod=POD),
        shell("large", f"python3 -c \"print('{{\\\"text\\\": \\\"' + 'x' * {LARGE} + '\\\"}}')\" > $PILOTHOUSE_OUTPUT"),
        {"name": "reads", "transform": {"value": "${{ size(steps.large.outputs.text) }}"}},
        {"name": "holes", "transform": {"value": "${{ {'none': null, 'list': [null]} }}"}},
        {"name": "confined", "executeCode": {"language": "python", "code": REACHES}},
    ]
    outputs = {name: f"steps.{name}.outputs.stdout" for name in ("ours", "theirs", "files", "layered", "block")}
    outputs |= {"answer": "steps.layered.outputs.answer", "large": "steps.large.outputs.text"}
    outputs |= {"size": "steps.reads.outputs.value", "confined": "steps.confined.outputs.stdout"}
    outputs |= {"holes": "steps.holes.outputs.value", "none": "steps.holes.outputs.value.none"}
    told = [{"name": name, "value": f"${{{{ {value} }}}}"} for name, value in outputs.items()]
    return Applied.of(mine, workflow("widely", *steps, outputs=told))


@pytest.fixture(scope="module", autouse=True)
def begun(example: Applied, fails: Applied, widely: Applied) -> None:
    """All of them run at the same time."""


def _texts(kind: str, data: Mapping[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "texts"}, "data": dict(data)}


def _from(kind: str, key: str) -> dict[str, Any]:
    return {"valueFrom": {f"{kind}KeyRef": {"name": "texts", "key": key}}}


_ENV = [
    {"name": "PLAIN", **_from("configMap", "plain")},
    {"name": "HIDDEN", **_from("secret", "hidden")},
    {"name": "LITERAL", "value": "$(HOME) $$(HOME)"},
]
_FILES = [
    {"path": "plain", **_from("configMap", "plain")},
    {"path": "hidden/file", **_from("secret", "hidden")},
    {"path": "given", "content": "${{ 'a ' + 'value' }}"},
]


def _command(name: str, command: list[str], **action: Any) -> dict[str, Any]:
    return {"name": name, "runCommand": {"command": command, **action}}


def test_the_example_runs_to_its_end_with_its_outputs(example: Applied) -> None:
    status = example.finished()["status"]
    assert (status["run"]["state"], status["run"]["progress"]) == ("Succeeded", "7/7")
    assert example.condition("Ready")["status"] == "True"
    outputs = example.outputs()
    assert (outputs["title"], outputs["changes"]) == ("Steady as she goes", 2)
    assert outputs["text"].startswith("Steady as she goes\n\nTwo changes")
    states = {path: step["state"] for path, step in example.steps().items()}
    assert states.pop("quiet") == "Skipped"
    assert states == dict.fromkeys(("changes", "any", "write", "notes", "check", "publish"), "Succeeded")


def test_its_steps_run_in_order_and_each_once(example: Applied, release: Release) -> None:
    example.finished()
    rows = Rows(release, example.kubectl.namespace or "", example.name)
    events = rows.events()
    assert (events[0], events[-1]) == (("RunStarted", ""), ("RunSucceeded", ""))
    ours = [(type_, path) for type_, path in events if type_.startswith("Step")]
    order = ["changes", "any", "write", "notes", "check", "publish"]
    in_turn = [(type_, path) for path in order for type_ in ("StepStarted", "StepSucceeded")]
    assert ours == [*in_turn[:4], ("StepSkipped", "quiet"), *in_turn[4:]]
    attempts = rows.attempts()
    assert [(path, number, state) for path, number, state, _ in attempts if path in ("changes", "write")] == [
        ("changes", 1, "Succeeded"),
        ("write", 1, "Succeeded"),
    ]
    in_pods = {path: carrier for path, _, _, carrier in attempts if carrier}
    assert in_pods.keys() == {"changes", "write", "check", "publish"}
    assert len(set(in_pods.values())) == 4
    assert [run.state for run in rows.runs()] == ["Succeeded"]


def test_no_pod_is_left_once_a_run_has_ended(example: Applied, widely: Applied, fails: Applied) -> None:
    for applied in (example, widely, fails):
        applied.finished()
        until(lambda applied=applied: not applied.pods(), f"{applied.name} has no Pods", 60)  # type: ignore[misc]


def test_a_failing_step_stalls_the_workflow_with_its_code_and_its_last_words(fails: Applied) -> None:
    fails.finished()
    stalled = fails.condition("Stalled")
    assert (stalled["status"], stalled["reason"]) == ("True", "Failed")
    assert "F-EXE" in stalled["message"]
    assert "exit code 3: all is lost" in stalled["message"]
    steps = fails.steps()
    assert (steps["bad"]["state"], steps["bad"]["code"]) == ("Failed", "F-EXE")
    assert steps["after"]["state"] == "Omitted"
    events = fails.kubectl.items("events", "--field-selector=involvedObject.kind=Workflow")
    assert ("Warning", "Failed", "fails") in [(e["type"], e["reason"], e["involvedObject"]["name"]) for e in events]


def test_a_failing_run_exits_kubectl_wait_for_finished_and_not_for_ready(fails: Applied) -> None:
    fails.finished()
    assert fails.condition("Finished")["status"] == "True"
    assert fails.condition("Ready")["status"] == "False"


def test_a_step_has_its_variables_and_its_arguments_are_text(widely: Applied) -> None:
    """A `$(HOME)` is expanded nowhere: the kubelet would, in both kinds of images."""
    assert widely.finished()["status"]["run"]["state"] == "Succeeded"
    expected = "$(HOME) a text a secret $(HOME) $$(HOME)"
    assert (widely.outputs()["ours"], widely.outputs()["theirs"]) == (expected, expected)


def test_a_step_has_its_files_in_our_image_and_in_one_of_its_own(widely: Applied) -> None:
    widely.finished()
    expected = "a texta secreta value"
    assert (widely.outputs()["files"], widely.outputs()["layered"]) == (expected, expected)


def test_an_image_of_the_users_gives_outputs_by_its_termination_message(widely: Applied) -> None:
    widely.finished()
    assert widely.outputs()["answer"] == 42


def test_the_pod_block_reaches_the_container(widely: Applied) -> None:
    widely.finished()
    assert widely.outputs()["block"].split("\n") == [str(96 * 1024**2), "from the block", "a text"]


def test_a_null_is_an_output_like_another(widely: Applied) -> None:
    outputs = widely.finished()["status"]["outputs"]
    assert {"name": "holes", "value": {"none": None, "list": [None]}} in outputs
    assert {"name": "none", "value": None} in outputs


def test_a_large_output_is_kept_apart_and_can_be_read_by_steps(widely: Applied, release: Release) -> None:
    status = widely.finished()["status"]
    [large] = [output for output in status["outputs"] if output["name"] == "large"]
    assert "value" not in large
    assert (large["size"], widely.outputs()["size"]) == (LARGE + 2, LARGE)
    query = (
        "SELECT length(data) FROM blobs JOIN runs USING (tenant) WHERE digest = %s AND workflow = %s AND namespace = %s"
    )
    assert release.sql(query, large["digest"], widely.name, widely.kubectl.namespace or "") == [[str(LARGE + 2)]]


def test_executed_code_has_no_network_and_no_token(widely: Applied) -> None:
    widely.finished()
    assert widely.outputs()["confined"].split("\n") == ["socket PermissionError", "token FileNotFoundError"]
