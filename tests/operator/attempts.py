"""Attempts, and what Pods are made from, to test with."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from pilothouse.api.agent import AgentSpec
from pilothouse.api.pod import Pod
from pilothouse.records.runs import Attempt, AttemptRef, RunRef, StepId
from pilothouse.records.states import AttemptState
from pilothouse.workflows.work import CommandWork
from pilothouse_operator.agentpod import AgentPod
from pilothouse_operator.commandpod import CommandPod
from pilothouse_operator.names import Owner
from pilothouse_operator.pods import Ground

NOW = datetime(2027, 1, 31, 12, tzinfo=UTC)
OWNER = Owner("team-a", "hello", "8d1f6f0e-0000-4000-8000-000000000001")
GROUND = Ground(UUID(int=7), OWNER, "pilothouse:test")


def attempt(step: str = "a", nonce: str | None = None, index: int = 0) -> Attempt:
    """An open one, of a nonce of its own where none is given."""
    ref = AttemptRef(RunRef(UUID(int=1), UUID(int=2)), uuid4(), 1)
    return Attempt(ref, StepId(step, index), 1, 0, nonce or uuid4().hex, AttemptState.OPEN, NOW)


def command_pod(block: dict[str, Any] | None = None, pending: float = 600.0, **work: Any) -> dict[str, Any]:
    """The manifest of a command's Pod; `block` is the user's, in the words of a manifest."""
    given = CommandWork(**{"argv": ["echo", "hello"], **work})
    pod = Pod.model_validate(block or {})
    texts = {"words": {"w": "hush $(HOME)"}}
    return CommandPod(GROUND, attempt(), given, pod, pending, texts).manifest()


def agent_pod(timeout: float | None = None, asked: Sequence[dict[str, Any]] = (), **spec: Any) -> dict[str, Any]:
    body, *others = [{"model": {"provider": "OpenAI", "name": "m"}, **each} for each in (spec, *asked)]
    return AgentPod(
        ground=GROUND,
        attempt=attempt("ask", index=2),
        spec=AgentSpec.model_validate(body),
        asked=[AgentSpec.model_validate(other) for other in others],
        work="sha256:" + "0" * 64,
        store_url="https://gateway.pilothouse.svc",
        store_ca="PEM",
        pending_timeout=600.0,
        timeout=timeout,
    ).manifest()


def env_of(container: dict[str, Any]) -> dict[str, Any]:
    """The variables as the kubelet sets them: the last of a name counts."""
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def mounts_of(container: dict[str, Any]) -> dict[str, tuple[str, bool]]:
    """By path, the volume and whether it is read-only."""
    return {each["mountPath"]: (each["name"], each.get("readOnly", False)) for each in container["volumeMounts"]}


def volumes_of(pod: dict[str, Any]) -> dict[str, Any]:
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    assert len(volumes) == len(pod["spec"]["volumes"]), "two volumes have one name"
    return volumes
