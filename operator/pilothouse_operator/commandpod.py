"""The Pod of a command step: in our image, under our entry point; in the user's image, as it is.

Neither holds a credential of ours. What our entry point is to do stands in an annotation that the Pod sees as a file;
Secrets come from the kubelet and are never read by the operator.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pilothouse.api.base import GROUP
from pilothouse.api.pod import Pod
from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.runs import Attempt
from pilothouse.workflows.commands.environment import defaults
from pilothouse.workflows.commands.pod import OUTPUT, SECRETS, SPEC, WORK, Spec
from pilothouse.workflows.work import CommandWork, Text, ValueSource
from pilothouse_operator.podblock import env_entry, escaped
from pilothouse_operator.pods import (
    COMMAND,
    IMAGE,
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

USER = 10002
"""Uid and gid of what users run."""

SPEC_ANNOTATION = f"{GROUP}/spec"

SPEC_LIMIT = 200 * 1024
"""Bytes of a spec that fit beside the other annotations of a Pod, of which the API server takes 256 KiB."""

TERMINATION_LOG = "/dev/termination-log"

FILES = "files"
"""The container that lays a step's files for a container of the user's image."""

_ENTRY = (PYTHON, "-I", "-m", "pilothouse.workflows.commands.pod")


@dataclass(frozen=True, slots=True)
class CommandPod:
    """What a command's Pod is made from. `config_maps` are the frozen texts."""

    ground: Ground
    attempt: Attempt
    work: CommandWork
    block: Pod
    pending_timeout: float
    config_maps: Mapping[str, Mapping[str, str]]

    def manifest(self) -> dict[str, Any]:
        """Raises Failed(F-RES) where the files are too large to travel with the Pod."""
        content = self._ours() if self.work.image is None else self._theirs(self.work.image)
        return build(self.ground, self.attempt, self.block, self.pending_timeout, content)

    def _ours(self) -> Content:
        main = {
            "name": "main",
            "image": self.ground.image,
            "imagePullPolicy": self.ground.image_pull_policy,
            "command": [*_ENTRY, "run", SPEC],
            "workingDir": WORK,
            "env": self._env(defaults(WORK), OUTPUT),
            "securityContext": security(),
            "volumeMounts": [mount("work", WORK), mount("tmp", "/tmp"), *self._spec_mounts()],  # noqa: S108
        }
        return Content(
            role=COMMAND,
            user=USER,
            containers=[with_belongings(with_resources(main, self.block), self.block)],
            volumes=[scratch("work", "1Gi"), scratch("tmp", "1Gi"), *self._spec_volumes()],
            annotations={SPEC_ANNOTATION: self._spec()},
            timeout=self.work.timeout,
        )

    def _theirs(self, image: str) -> Content:
        main = {
            "name": "main",
            "image": image,
            "command": [escaped(argument) for argument in self.work.argv],
            "workingDir": WORK,
            "env": self._env({}, TERMINATION_LOG),
            "securityContext": {**security(), "readOnlyRootFilesystem": False},
            "volumeMounts": [mount("work", WORK)],
        }
        files = bool(self.work.files)
        return Content(
            role=IMAGE,
            user=USER,
            containers=[with_belongings(with_resources(main, self.block), self.block)],
            init_containers=[self._layer()] if files else [],
            volumes=[scratch("work", "1Gi"), *(self._spec_volumes() if files else [])],
            annotations={SPEC_ANNOTATION: self._spec()} if files else {},
            timeout=self.work.timeout,
        )

    def _layer(self) -> dict[str, Any]:
        """Lays the step's files where the user's container will work."""
        return {
            "name": FILES,
            "image": self.ground.image,
            "imagePullPolicy": self.ground.image_pull_policy,
            "command": [*_ENTRY, "lay", SPEC],
            "workingDir": WORK,
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "securityContext": security(),
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            "volumeMounts": [mount("work", WORK), *self._spec_mounts()],
        }

    def _env(self, ours: Mapping[str, str], output: str) -> list[dict[str, Any]]:
        """The nearer says what a variable is: the step, its `pod` block, we. `$PILOTHOUSE_OUTPUT` is ours alone."""
        said = {name: {"value": value} for name, value in ours.items()}
        said |= {variable.name: variable.manifest() for variable in self.block.env}
        said |= {name: self._source(text) for name, text in self.work.env.items()}
        return [env_entry(name, source) for name, source in (said | {"PILOTHOUSE_OUTPUT": {"value": output}}).items()]

    def _source(self, text: Text) -> dict[str, Any]:
        if isinstance(text, str):
            return {"value": text}
        if text.kind == "ConfigMap":
            return {"value": self.config_maps[text.name][text.key]}
        return {"valueFrom": {"secretKeyRef": {"name": text.name, "key": text.key}}}

    def _spec(self) -> str:
        files = {path: self._text(text) for path, text in self.work.files.items() if not _secret(text)}
        spec = Spec(
            argv=tuple(self.work.argv),
            timeout=self.work.timeout,
            confined=self.work.confined,
            files=files,
            secret_files={path: f"{SECRETS}/{index}" for index, (path, _) in enumerate(self._secret_files())},
        )
        text = json.dumps(spec.to_json())
        if len(text) > SPEC_LIMIT:
            raise Failed(
                FailureCode.RES,
                f"the step's arguments and files take {len(text):,} bytes together; at most {SPEC_LIMIT:,} travel "
                "with its Pod: mount a ConfigMap with `pod.volumes` instead",
            )
        return text

    def _text(self, text: Text) -> str:
        return text if isinstance(text, str) else self.config_maps[text.name][text.key]

    def _secret_files(self) -> Iterator[tuple[str, ValueSource]]:
        for path, text in self.work.files.items():
            if isinstance(text, ValueSource) and _secret(text):
                yield path, text

    def _spec_mounts(self) -> list[dict[str, Any]]:
        mounts = [mount("spec", SPEC.rpartition("/")[0], read_only=True)]
        return mounts + ([mount("secrets", SECRETS, read_only=True)] if any(self._secret_files()) else [])

    def _spec_volumes(self) -> list[dict[str, Any]]:
        field = {"fieldPath": f"metadata.annotations['{SPEC_ANNOTATION}']"}
        spec = {"name": "spec", "downwardAPI": {"items": [{"path": SPEC.rpartition("/")[2], "fieldRef": field}]}}
        sources = [
            {"secret": {"name": text.name, "items": [{"key": text.key, "path": str(index)}]}}
            for index, (_, text) in enumerate(self._secret_files())
        ]
        return [spec] + ([{"name": "secrets", "projected": {"sources": sources}}] if sources else [])


def _secret(text: Text) -> bool:
    return isinstance(text, ValueSource) and text.kind == "Secret"
