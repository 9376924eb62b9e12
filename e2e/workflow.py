"""Workflows as the tests apply and watch them."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from pilothouse.api.conditions import check_object

FINISH_LIMIT = 120
"""Seconds within which a run must have ended, unless a test says otherwise."""


def workflow(name: str, *steps: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """The manifest of a Workflow."""
    return {
        "apiVersion": "pilothouse.dev/v1alpha1",
        "kind": "Workflow",
        "metadata": {"name": name},
        "spec": {"steps": list(steps), **spec},
    }


def shell(name: str, script: str, **step: Any) -> dict[str, Any]:
    """A step that runs a script in our image."""
    return {"name": name, "runCommand": {"command": ["sh", "-c", script]}, **step}


def light(name: str, value: Any = 1, **step: Any) -> dict[str, Any]:
    """A step without a Pod."""
    return {"name": name, "transform": {"value": value}, **step}


def agent(name: str, *turns: Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """The manifest of an Agent whose model says these turns."""
    return {
        "apiVersion": "pilothouse.dev/v1alpha1",
        "kind": "Agent",
        "metadata": {"name": name},
        "spec": {"model": {"provider": "Scripted", "script": list(turns)}, **spec},
    }


def asks(name: str, agent: str, **step: Any) -> dict[str, Any]:
    """A step that invokes an Agent."""
    return {"name": name, "invokeAgent": {"agentRef": {"name": agent}, "message": "Go."}, **step}


@dataclass(frozen=True)
class Applied:
    """A Workflow on the cluster."""

    kubectl: Kubectl
    name: str

    @classmethod
    def of(cls, kubectl: Kubectl, manifest: Mapping[str, Any]) -> "Applied":
        kubectl.apply(manifest)
        return cls(kubectl, manifest["metadata"]["name"])

    def finished(self, seconds: int = FINISH_LIMIT) -> dict[str, Any]:
        """The object once its run has ended; it keeps the kstatus rules then."""
        self.kubectl.wait("condition=Finished", f"workflow/{self.name}", seconds=seconds)
        return self.object()

    def stalled(self, seconds: int = FINISH_LIMIT) -> dict[str, Any]:
        """The object once nothing more happens until someone changes something."""
        self.kubectl.wait("condition=Stalled", f"workflow/{self.name}", seconds=seconds)
        return self.object()

    def object(self) -> dict[str, Any]:
        """The object as it is; it keeps the kstatus rules."""
        found = self.kubectl.get("workflow", self.name)
        assert check_object(found) == []
        return found

    def seen(self, seconds: int = 60) -> dict[str, Any]:
        """The object once the operator has looked at its newest generation."""

        def newest() -> dict[str, Any] | None:
            found = self.object()
            current = found["status"].get("observedGeneration") == found["metadata"]["generation"]
            return found if current else None

        return until(newest, f"workflow {self.name} was looked at", seconds)

    def nudged(self) -> dict[str, Any]:
        """The object once the operator has looked at it after all that was done to it, whatever that was: a change that
        only controls a run makes a new generation, which is then looked at."""
        self.patch({"spec": {"description": f"seen at {time.monotonic()}"}})
        return self.seen()

    def condition(self, type_: str) -> dict[str, Any]:
        """One condition; empty where it does not stand."""
        conditions = self.object().get("status", {}).get("conditions", [])
        return next((each for each in conditions if each["type"] == type_), {})

    def steps(self) -> dict[str, dict[str, Any]]:
        """The steps that the status lists, by path."""
        return {step["path"]: step for step in self.object().get("status", {}).get("steps", [])}

    def outputs(self) -> dict[str, Any]:
        return {each["name"]: each.get("value") for each in self.object()["status"].get("outputs", [])}

    def pods(self) -> list[dict[str, Any]]:
        """The Pods of its runs."""
        return self.kubectl.items("pods", f"--selector=pilothouse.dev/workflow={self.name}")

    def patch(self, patch: Mapping[str, Any]) -> None:
        self.kubectl("patch", "workflow", self.name, "--type=merge", "--patch", json.dumps(patch))
