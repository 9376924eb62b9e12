"""The scheduler and the kubelet of a cluster in memory, driven by hand."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pilothouse.workflows.commands import frames
from pilothouse_operator.kube.port import Object
from pilothouse_operator.kube.resources import PODS
from pilothouse_operator.names import STEP
from pilothouse_operator.pods import MAIN
from tests.operator.fakekube import FakeKube

NODE = "node-1"


def framed(out: str = "hello\n", code: int | None = 0, **more: Any) -> bytes:
    """What our entry point logs of a command."""
    said = frames.encode("start", {"pid": 7, "at": 0.0}) + b"".join(frames.encode_text("out", out))
    if "output" in more:
        said += b"".join(frames.encode_text("output", more.pop("output")))
    return said + frames.encode_exit(frames.Exit(code=code, **more))


@dataclass
class Kubelet:
    """Speaks of Pods by their step. `executions` counts the Pods of each step that ran."""

    kube: FakeKube
    namespace: str = "team-a"
    executions: Counter[str] = field(default_factory=Counter)
    _steps: dict[str, str] = field(default_factory=dict)
    """By the UID of a Pod the step that it had at first."""

    def pods(self, step: str | None = None) -> list[Object]:
        pods = self.kube.all(PODS, self.namespace)
        return [pod for pod in pods if step in (None, self._step(pod["metadata"]))]

    def _step(self, metadata: Mapping[str, Any]) -> str:
        return self._steps.setdefault(metadata["uid"], metadata.get("labels", {}).get(STEP, ""))

    def pod(self, step: str) -> Object:
        """The one Pod of the step."""
        (pod,) = self.pods(step)
        return pod

    def bind(self, step: str) -> None:
        """A node takes the Pod; nothing of it runs yet."""
        pod = self.pod(step)
        assert not pod["spec"].get("schedulingGates"), "a gated Pod is not scheduled"

        def edit(pod: Object) -> None:
            pod["spec"]["nodeName"] = NODE
            pod["status"] |= {"startTime": self._moment(), "conditions": []}
            self._main(pod, {"waiting": {"reason": "ContainerCreating"}})

        self._edit(step, edit)

    def waits(self, step: str, reason: str, message: str = "") -> None:
        """The main container cannot start now."""
        self._edit(step, lambda pod: self._main(pod, {"waiting": {"reason": reason, "message": message}}))

    def unmounted(self, step: str) -> None:
        """A node has the Pod and cannot mount its volumes, of which only an Event tells."""
        self.bind(step)
        said = {"type": "PodReadyToStartContainers", "status": "False"}
        self._edit(step, lambda pod: pod["status"].update(conditions=[said]))

    def unschedulable(self, step: str, message: str) -> None:
        said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
        self._edit(step, lambda pod: pod["status"].update(conditions=[said]))

    def start(self, step: str) -> None:
        """The main container runs."""
        if "nodeName" not in self.pod(step)["spec"]:
            self.bind(step)
        self.executions[step] += 1

        def edit(pod: Object) -> None:
            pod["status"]["phase"] = "Running"
            self._main(pod, {"running": {"startedAt": self._moment()}})

        self._edit(step, edit)

    def end(self, step: str, log: bytes | None = None, code: int = 0, reason: str = "", message: str = "") -> None:
        """The main container ends."""
        pod = self.pod(step)
        if log is not None:
            self.kube.logs[self.namespace, pod["metadata"]["name"], _main(pod)] = log
        ended = {"exitCode": code, "reason": reason or ("Error" if code else "Completed"), "message": message}

        def edit(pod: Object) -> None:
            pod["status"]["phase"] = "Failed" if code else "Succeeded"
            self._main(pod, {"terminated": ended})

        self._edit(step, edit)

    def succeed(self, step: str, out: str = "hello\n") -> None:
        """The Pod runs from its beginning to its good end."""
        self.start(step)
        self.end(step, framed(out))

    def fail(self, step: str, reason: str, message: str = "", *, states: bool = True) -> None:
        """The kubelet ends or turns away the Pod as a whole. Without `states` it says nothing of containers."""

        def edit(pod: Object) -> None:
            pod["status"] |= {"phase": "Failed", "reason": reason, "message": message}
            if not states:
                pod["status"].pop("containerStatuses", None)

        self._edit(step, edit)

    def deadline(self, step: str, code: int = 137) -> None:
        """The Pod reaches its `activeDeadlineSeconds`, as it does where the operator stops it."""
        pod = self.pod(step)
        assert "activeDeadlineSeconds" in pod["spec"], "it has no deadline"
        if pod["status"]["phase"] == "Running":
            self.end(step, code=code)
        self.fail(step, "DeadlineExceeded", "Pod was active on the node longer than the specified deadline")

    def vanish(self, step: str) -> None:
        """The Pod is gone without a trace."""
        self.kube.remove(PODS, self.namespace, self.pod(step)["metadata"]["name"])

    def _main(self, pod: Object, state: Mapping[str, Any]) -> None:
        pod["status"]["containerStatuses"] = [{"name": _main(pod), "state": dict(state)}]

    def _edit(self, step: str, edit: Callable[[Object], None]) -> None:
        self.kube.change(PODS, self.namespace, self.pod(step)["metadata"]["name"], edit)

    def _moment(self) -> str:
        return str(self.kube._moment())


def _main(pod: Object) -> str:
    """The name of the main container."""
    names = [str(each["name"]) for each in pod["spec"]["containers"]]
    return next(name for name in names if name in MAIN.values())
