"""The workflow that the faults strike: one step of each kind that runs in a Pod, each with a side effect."""

from collections.abc import Mapping
from typing import Any

from e2e.cluster.clients import Kubectl
from e2e.faults.witness import PATH, Witness
from e2e.poll import until
from e2e.workflow import Applied, workflow

SECONDS = 6
"""How long each step works after its side effect: the time in which it is struck."""

STEPS = ("ours", "theirs", "agent")


def subject(kubectl: Kubectl, image: str, seconds: int = SECONDS) -> Applied:
    """The workflow, applied. Steps run one after the other."""
    witness = Witness.of(kubectl, image)
    kubectl.apply(_agent(witness, seconds))
    command = ["sh", "-c", f"echo $0 >> {PATH}/log && sleep {seconds}"]
    theirs = {"image": image, "command": [*command, "theirs"]}
    steps = (
        {"name": "ours", "runCommand": {"command": [*command, "ours"]}, "pod": witness.pod},
        {"name": "theirs", "runCommand": theirs, "pod": witness.pod, "needs": ["ours"]},
        {"name": "agent", "invokeAgent": {"agentRef": {"name": "striven"}, "message": "Go."}, "needs": ["theirs"]},
    )
    return Applied.of(kubectl, workflow("struck", *steps))


def _agent(witness: Witness, seconds: int) -> dict[str, Any]:
    call = {"name": "shell", "arguments": {"command": f"echo agent >> {PATH}/log && sleep {seconds}"}}
    return {
        "apiVersion": "pilothouse.dev/v1alpha1",
        "kind": "Agent",
        "metadata": {"name": "striven"},
        "spec": {
            "model": {"provider": "Scripted", "script": [{"toolCalls": [call]}, {"text": "done"}]},
            "tools": [{"builtin": "shell"}],
            "pod": witness.pod,
        },
    }


def container_at_work(applied: Applied, step: str, container: str) -> str:
    """The id of a container of the step's Pod, once that has been running for a moment. Bounded."""

    def found() -> str | None:
        for pod in applied.kubectl.items("pods", f"--selector=pilothouse.dev/step={step}"):
            status = pod.get("status", {})
            entries = (*status.get("containerStatuses", []), *status.get("initContainerStatuses", []))
            for entry in entries:
                if entry["name"] == container and "running" in entry["state"]:
                    return str(entry["containerID"].partition("://")[2])
        return None

    return until(found, f"the container {container} of step {step} runs")


def at_work(applied: Applied, step: str) -> None:
    """Returns once the step's main container runs."""
    container_at_work(applied, step, "agent" if step == "agent" else "main")


def side_effect_of(applied: Applied, step: str) -> None:
    """Returns once the step's side effect is there, and the step works on."""
    container = "sandbox" if step == "agent" else "main"
    [pod] = applied.kubectl.items("pods", f"--selector=pilothouse.dev/step={step}")
    look = ("exec", pod["metadata"]["name"], f"--container={container}", "--", "grep", "-q", step, f"{PATH}/log")
    until(lambda: applied.kubectl.succeeds(*look) or None, f"the side effect of step {step}")


def container_of(pod: Mapping[str, Any]) -> str:
    """The id of the one container of a Pod of the release."""
    return str(pod["status"]["containerStatuses"][0]["containerID"].partition("://")[2])
