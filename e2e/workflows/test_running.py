"""A workflow from `kubectl apply` to its end, as its user sees it."""

from pathlib import Path

from e2e.cluster.clients import Kubectl
from e2e.release import Release
from e2e.workflow import Applied, shell, workflow

EXAMPLE = Path("examples/release-notes.yaml")


def test_the_example_runs_to_its_end_with_its_outputs(release: Release, kubectl: Kubectl, namespace: str) -> None:
    mine = kubectl.within(namespace)
    mine.apply(EXAMPLE.read_text())
    applied = Applied(mine, "release-notes")
    status = applied.finished()["status"]
    assert (status["run"]["state"], status["run"]["progress"]) == ("Succeeded", "7/7")
    assert applied.outputs()["title"] == "Steady as she goes"
    states = {path: step["state"] for path, step in applied.steps().items()}
    assert states == {
        "changes": "Succeeded",
        "any": "Succeeded",
        "write": "Succeeded",
        "quiet": "Skipped",
        "notes": "Succeeded",
        "check": "Succeeded",
        "publish": "Succeeded",
    }
    [[order]] = release.sql(
        "SELECT string_agg(path, ' ' ORDER BY seq) FROM events JOIN runs ON run = id "
        f"WHERE namespace = '{namespace}' AND type = 'StepSucceeded'"
    )
    assert order.split()[:3] == ["changes", "any", "write"]
    assert order.split()[-2:] == ["check", "publish"]


def test_a_failing_step_stalls_the_workflow_with_its_code_and_its_last_words(
    release: Release, kubectl: Kubectl, namespace: str
) -> None:
    manifest = workflow("fails", shell("bad", "echo all is lost >&2; exit 3"), shell("after", "true", needs=["bad"]))
    applied = Applied.of(kubectl.within(namespace), manifest)
    applied.finished()
    stalled = applied.condition("Stalled")
    assert stalled["status"] == "True"
    assert stalled["reason"] == "Failed"
    assert "F-EXE" in stalled["message"]
    assert "exit code 3: all is lost" in stalled["message"]
    assert applied.steps()["after"]["state"] == "Omitted"
