"""What `kubectl get` shows of workflows and agents."""

import re

from e2e.cluster.clients import Kubectl
from e2e.release import Release
from e2e.workflow import Applied, agent, light, shell, workflow


def _table(kubectl: Kubectl, *arguments: str) -> dict[str, dict[str, str]]:
    """The table that `kubectl get` prints, by the name in its first column. Columns begin where their heads do."""
    head, *lines = kubectl("get", *arguments).splitlines()
    starts = [match.start() for match in re.finditer(r"\S+", head)]
    cuts = list(zip(starts, [*starts[1:], None], strict=True))
    names = [head[start:end].strip() for start, end in cuts]
    rows = [[line[start:end].strip() for start, end in cuts] for line in lines]
    return {row[0]: dict(zip(names, row, strict=True)) for row in rows}


def test_kubectl_get_shows_how_each_workflow_stands(release: Release, kubectl: Kubectl, namespace: str) -> None:
    mine = kubectl.within(namespace)
    mine.apply(
        workflow("good", light("a"), light("b", needs=["a"])),
        workflow("bad", shell("breaks", "echo no luck >&2; exit 7"), light("after", needs=["breaks"])),
        workflow("busy", light("first"), shell("sleeps", "sleep 600", needs=["first"])),
        workflow("wrong", light("a", needs=["b"]), light("b", needs=["a"])),
    )
    for name in ("good", "bad"):
        Applied(mine, name).finished()
    Applied(mine, "wrong").stalled()
    mine.wait("jsonpath={.status.run.progress}=1/2", "workflow/busy")
    table = _table(mine, "workflows")
    assert list(table["good"]) == ["NAME", "RUN", "STATE", "PROGRESS", "AGE", "MESSAGE"]
    seen = {name: (row["RUN"], row["STATE"], row["PROGRESS"]) for name, row in table.items()}
    assert seen == {
        "good": ("1", "Succeeded", "2/2"),
        "bad": ("1", "Failed", "2/2"),
        "busy": ("1", "Running", "1/2"),
        "wrong": ("", "", ""),
    }
    assert table["good"]["MESSAGE"] == "run 1 succeeded"
    assert table["bad"]["MESSAGE"] == ("run 1: F-EXE step `breaks` failed: the command ended with exit code 7: no luck")
    assert table["busy"]["MESSAGE"].startswith("run 1: sleeps")
    assert table["wrong"]["MESSAGE"] == "spec.steps[0]: the steps need each other: a -> b -> a"
    assert all(re.fullmatch(r"\d+[sm]\S*", row["AGE"]) for row in table.values())
    assert _table(mine, "pwf", "good").keys() == {"good"}


def test_the_kinds_of_the_project_are_one_category(release: Release, kubectl: Kubectl, namespace: str) -> None:
    mine = kubectl.within(namespace)
    mine.apply(workflow("good", light("a")), agent("talker", {"text": "Ahoy"}))
    Applied(mine, "good").finished()
    mine.wait("condition=Ready", "agent/talker")
    names = mine("get", "pilothouse", "--output=name").split()
    assert names == ["agent.pilothouse.dev/talker", "workflow.pilothouse.dev/good"]
    assert _table(mine, "agents")["talker"]["READY"] == "True"
