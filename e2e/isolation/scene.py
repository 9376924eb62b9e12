"""An agent at work in its Pod, whose sandbox runs what a test wants: the model is scripted, all else is real."""

import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.cluster.clients import Kubectl
from e2e.poll import until
from e2e.workflow import Applied, agent, asks, workflow

PROBE = Path(__file__).with_name("probe.py").read_text()
KEY = "model-key-canary"
SECRET = "step-secret-canary"  # noqa: S105 - a canary
WORKING = "/workspace/working"
"""A file that the sandbox makes once its command is under way."""


def probing(name: str) -> dict[str, Any]:
    """An Agent that looks from its sandbox at all it can reach, and then works on until it is ended. What it found is
    the result of its second call."""
    write = {"name": "file_write", "arguments": {"path": "probe.py", "text": PROBE}}
    run = {"name": "shell", "arguments": {"command": "python3 -I probe.py"}}
    stay = {"name": "shell", "arguments": {"command": f"touch {WORKING}; exec sleep 600"}}
    turns: list[dict[str, Any]] = [
        {"toolCalls": [write]},
        {"toolCalls": [run]},
        {"toolCalls": [stay]},
        {"text": "done"},
    ]
    model = {"apiKeyFrom": {"secretKeyRef": {"name": "model", "key": "key"}}}
    made = agent(name, *turns, tools=[{"builtin": "file_write"}, {"builtin": "shell"}])
    made["spec"]["model"] |= model
    return made


def secret(name: str, **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": encoded}


@dataclass(frozen=True)
class AtWork:
    """The Pod of an agent that works."""

    kubectl: Kubectl
    name: str
    uid: str

    @classmethod
    def of(cls, kubectl: Kubectl, name: str) -> "AtWork":
        """Applies a Workflow of that name which invokes a probing Agent, and waits until that works."""
        kubectl.apply(secret("model", key=KEY), probing(name))
        return cls.found(Applied.of(kubectl, workflow(name, asks("ask", name))))

    @classmethod
    def found(cls, applied: Applied, before: str = "") -> "AtWork":
        """The Pod that works for the Workflow, another one than that of UID `before`."""

        def working() -> AtWork | None:
            for pod in applied.pods():
                metadata = pod["metadata"]
                there = cls(applied.kubectl, metadata["name"], metadata["uid"])
                if there.uid != before and "deletionTimestamp" not in metadata and there._works():
                    return there
            return None

        return until(working, f"the agent of {applied.name} works")

    def _works(self) -> bool:
        return self.kubectl.succeeds("exec", self.name, "--container=sandbox", "--", "test", "-e", WORKING)

    def python(self, code: str, *arguments: str, container: str = "agent") -> Any:
        """Runs Python in a container; what it prints, read as JSON."""
        where = (f"--container={container}", "--stdin", "--")
        printed = self.kubectl("exec", self.name, *where, "python", "-I", "-", *arguments, stdin=code)
        return json.loads(printed)
