"""The Pod of an agent step: the loop in our image, and beside it, if its tools need one, the sandbox.

Containers of one Pod share a network, so the sandbox seals itself before any tool runs. They share one folder, in
which the agent listens on a path socket: to the sandbox it is read-only. Neither has a token for the API server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pilothouse.api.agent import AgentSpec, Tool
from pilothouse.api.meta import KeyRef
from pilothouse.api.pod import Pod
from pilothouse.records.runs import Attempt
from pilothouse.tools.names import SANDBOXED_NAMES
from pilothouse.tools.sandbox.commands import HANDED_ON
from pilothouse_operator.pods import (
    AGENT,
    PYTHON,
    Content,
    Ground,
    build,
    mount,
    scratch,
    security,
    with_belongings,
    with_resources,
)

AGENT_USER = 10001
SANDBOX_USER = 10002
SOCKETS = "/run/pilothouse/sandbox"
STORE = "/var/run/pilothouse/store"
MODEL = "/var/run/pilothouse/model"
SECRETS = "/var/run/pilothouse/secrets"
AUDIENCE = "pilothouse-store"
"""For whom the Pod's token is, so that nobody else accepts it."""

TOKEN_SECONDS = 3600
"""Life of the Pod's token; the kubelet renews it."""


@dataclass(frozen=True, slots=True)
class AgentPod:
    """What an agent's Pod is made from. `asked` are the Agents that it can ask: they work in its Pod and its sandbox.
    `work` is the digest of its assignment; `store` how it reaches the gateway."""

    ground: Ground
    attempt: Attempt
    spec: AgentSpec
    asked: Sequence[AgentSpec]
    work: str
    store_url: str
    store_ca: str
    pending_timeout: float
    timeout: float | None = None

    def manifest(self) -> dict[str, Any]:
        return build(self.ground, self.attempt, self._block, self.pending_timeout, self._content())

    @property
    def _block(self) -> Pod:
        return self.spec.pod or Pod()

    @property
    def _sandboxed(self) -> bool:
        return any(
            tool.builtin in SANDBOXED_NAMES or (tool.mcp is not None and tool.mcp.command is not None)
            for tool in self._tools
        )

    @property
    def _tools(self) -> list[Tool]:
        return [tool for spec in (self.spec, *self.asked) for tool in spec.tools]

    @property
    def _keys(self) -> list[KeyRef]:
        """The keys of Secrets beside that of the agent's own model: those of the models of Agents that it can ask, and
        those that headers of MCP servers take their values from."""
        own = self.spec.model.api_key_from
        models = [spec.model.api_key_from for spec in self.asked]
        headers = [header.value_from for tool in self._tools if tool.mcp for header in tool.mcp.headers]
        refs = [source.secret_key_ref for source in (*models, *headers) if source is not None]
        return list(
            dict.fromkeys(ref for ref in refs if ref is not None and (own is None or ref != own.secret_key_ref))
        )

    def _content(self) -> Content:
        return Content(
            role=AGENT,
            user=AGENT_USER,
            containers=[with_resources(self._agent(), self._block)],
            init_containers=[with_belongings(self._sandbox(), self._block)] if self._sandboxed else [],
            volumes=self._volumes(),
            timeout=self.timeout,
        )

    def _agent(self) -> dict[str, Any]:
        mounts = [mount("tmp", "/tmp"), mount("store", STORE, read_only=True)]  # noqa: S108
        mounts += [mount("sockets", SOCKETS)] if self._sandboxed else []
        mounts += [mount("model", MODEL, read_only=True)] if self.spec.model.api_key_from else []
        mounts += [mount("secrets", SECRETS, read_only=True)] if self._keys else []
        return {
            **self._image("agent", "pilothouse.attempts.pod"),
            "env": [{"name": name, "value": value} for name, value in self._env().items()],
            "securityContext": security(),
            "volumeMounts": mounts,
        }

    def _env(self) -> Mapping[str, str]:
        return {
            "PILOTHOUSE_WORK": self.work,
            "PILOTHOUSE_STORE_URL": self.store_url,
            "PILOTHOUSE_STORE_CA_PEM": self.store_ca,
            "PILOTHOUSE_STEP": self.attempt.step.path,
            "PILOTHOUSE_STEP_INDEX": str(self.attempt.step.index),
            "PILOTHOUSE_ATTEMPT_NUMBER": str(self.attempt.number),
            "PILOTHOUSE_SANDBOX": "1" if self._sandboxed else "",
        }

    def _sandbox(self) -> dict[str, Any]:
        options = ["--connect", f"{SOCKETS}/agent", "--workspace", "/workspace", "--seal", "required", "--wait", "600"]
        container = self._image("sandbox", "pilothouse.tools.sandbox", *options)
        return {
            **container,
            "restartPolicy": "Always",
            "workingDir": "/workspace",
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "1Gi"}},
            "env": [{"name": HANDED_ON, "value": ",".join(entry.name for entry in self._block.env)}],
            "securityContext": security(SANDBOX_USER),
            "volumeMounts": [
                mount("workspace", "/workspace"),
                mount("sandbox-tmp", "/tmp"),  # noqa: S108
                mount("shm", "/dev/shm"),  # noqa: S108 - else it is the agent's as well
                mount("queues", "/dev/mqueue", read_only=True),  # likewise
                mount("sockets", SOCKETS, read_only=True),
            ],
        }

    def _image(self, name: str, module: str, *options: str) -> dict[str, Any]:
        return {
            "name": name,
            "image": self.ground.image,
            "imagePullPolicy": self.ground.image_pull_policy,
            "command": [PYTHON, "-I", "-m", module, *options],
        }

    def _volumes(self) -> list[dict[str, Any]]:
        token = {"audience": AUDIENCE, "expirationSeconds": TOKEN_SECONDS, "path": "token"}
        volumes: list[dict[str, Any]] = [
            scratch("tmp", "256Mi"),
            {"name": "store", "projected": {"sources": [{"serviceAccountToken": token}]}},
        ]
        if self._sandboxed:
            volumes += [
                scratch("sockets", "1Mi", memory=True),
                scratch("workspace", self._workspace_size()),
                scratch("sandbox-tmp", "1Gi"),
                scratch("shm", "64Mi", memory=True),
                scratch("queues", "1Mi", memory=True),
            ]
        if (key := self.spec.model.api_key_from) is not None:
            items = [{"key": key.secret_key_ref.key, "path": "key"}]
            volumes.append({"name": "model", "secret": {"secretName": key.secret_key_ref.name, "items": items}})
        if self._keys:
            sources = [{"secret": _as_file(ref)} for ref in self._keys]
            volumes.append({"name": "secrets", "projected": {"sources": sources}})
        return volumes

    def _workspace_size(self) -> str:
        sandbox = self.spec.sandbox
        return str((sandbox and sandbox.workspace and sandbox.workspace.size) or "1Gi")


def _as_file(ref: KeyRef) -> dict[str, Any]:
    return {"name": ref.name, "items": [{"key": ref.key, "path": f"{ref.name}/{ref.key}"}]}
