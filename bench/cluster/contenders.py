"""What is timed: one restricted Pod that prints a word, bare or as the one step of a workflow of ours or of Argo's.

All run the same command in the same image.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from e2e import pods
from e2e.workflow import workflow

COMMAND = ("python", "-I", "-c", "print('ahoy')")

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Contender:
    """A kind of object that runs the command: how one is made, and how it shows that it has ended."""

    what: str
    api: str
    resource: str
    manifest: Callable[[str], Object]
    ended: Callable[[Object], bool]

    def path(self, namespace: str) -> str:
        return f"{self.api}/namespaces/{namespace}/{self.resource}"


def bare_pod(image: str) -> Contender:
    return Contender(
        "bare Pod", "/api/v1", "pods", lambda name: pods.restricted(name, image, COMMAND), _phase("Succeeded")
    )


def bare_container(image: str) -> Contender:
    """The same Pod until its container has ended. The kubelet says so before it calls the Pod Succeeded."""
    pod = bare_pod(image)
    return replace(pod, what="bare Pod, to its container's end", ended=_container_ended)


def ours() -> Contender:
    """A step without an image of its own runs in the image of the release."""
    step = {"name": "greet", "runCommand": {"command": list(COMMAND)}}
    return Contender(
        "one-step workflow", "/apis/pilothouse.dev/v1alpha1", "workflows", lambda name: workflow(name, step), _finished
    )


def argo(image: str) -> Contender:
    return Contender(
        "Argo's one-step workflow",
        "/apis/argoproj.io/v1alpha1",
        "workflows",
        lambda name: _argo_workflow(name, image),
        _phase("Succeeded"),
    )


def _argo_workflow(name: str, image: str) -> Object:
    """The bare Pod's own settings, said in Argo's words."""
    pod = pods.restricted(name, image, COMMAND)["spec"]
    (container,) = pod["containers"]
    template = {
        "name": "greet",
        "container": {key: value for key, value in container.items() if key != "volumeMounts"},
    }
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"entrypoint": "greet", "securityContext": pod["securityContext"], "templates": [template]},
    }


def _phase(good: str) -> Callable[[Object], bool]:
    def ended(state: Object) -> bool:
        phase = state.get("status", {}).get("phase")
        assert phase not in ("Failed", "Error"), f"{state['metadata']['name']} went wrong: {state['status']}"
        return bool(phase == good)

    return ended


def _container_ended(state: Object) -> bool:
    statuses = state.get("status", {}).get("containerStatuses", [])
    ends = [each["state"]["terminated"] for each in statuses if "terminated" in each["state"]]
    assert all(end["exitCode"] == 0 for end in ends), f"{state['metadata']['name']} went wrong: {ends}"
    return bool(ends)


def _finished(state: Object) -> bool:
    conditions = {each["type"]: each for each in state.get("status", {}).get("conditions", [])}
    finished = bool(conditions.get("Finished", {}).get("status") == "True")
    assert not finished or conditions["Ready"]["status"] == "True", f"a workflow went wrong: {state['status']}"
    return finished
