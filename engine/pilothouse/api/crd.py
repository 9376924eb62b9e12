"""The CustomResourceDefinitions, made from the models: `python -m pilothouse.api.crd [--check] DIR`."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import yaml

from pilothouse.api.agent import Agent
from pilothouse.api.base import GROUP, VERSION, ApiModel
from pilothouse.api.pack import Pack
from pilothouse.api.schema import Schema, structural
from pilothouse.api.toolapproval import ToolApproval
from pilothouse.api.workflow import Workflow

MAX_BYTES = 200_000  # client-side apply copies a CRD into an annotation, which may hold 256 KiB


class Column(TypedDict):
    """A column of `kubectl get`."""

    name: str
    type: str
    jsonPath: str


def _column(name: str, path: str, kind: str = "string") -> Column:
    return {"name": name, "type": kind, "jsonPath": path}


def _condition(kind: str, part: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{part}'


_AGE = _column("Age", ".metadata.creationTimestamp", "date")
_READY = _column("Ready", _condition("Ready", "status"))
_MESSAGE = _column("Message", _condition("Ready", "message"))


@dataclass(frozen=True)
class Kind:
    """What a CRD says besides its schema."""

    model: type[ApiModel]
    plural: str
    short: str
    columns: tuple[Column, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.model.__name__

    @property
    def file_name(self) -> str:
        return f"{GROUP}_{self.plural}.yaml"


KINDS = (
    Kind(
        Agent,
        "agents",
        "agt",
        (
            _READY,
            _column("Model", ".spec.model.name"),
            _column("Autonomy", ".spec.governance.autonomy"),
            _AGE,
            _MESSAGE,
        ),
    ),
    Kind(
        Workflow,
        "workflows",
        "pwf",
        (
            _column("Run", ".status.run.number", "integer"),
            _column("State", ".status.run.state"),
            _column("Progress", ".status.run.progress"),
            _AGE,
            _MESSAGE,
        ),
    ),
    Kind(
        Pack,
        "packs",
        "pak",
        (
            _column("Version", ".spec.version"),
            _READY,
            _column("Verified", _condition("Verified", "status")),
            _AGE,
            _MESSAGE,
        ),
    ),
    Kind(
        ToolApproval,
        "toolapprovals",
        "tapp",
        (
            _column("Tool", ".spec.request.tool"),
            _column("Workflow", ".spec.request.workflow.name"),
            _column("Run", ".spec.request.run.number", "integer"),
            _column("Class", ".spec.request.approvalClass"),
            _column("Decision", ".spec.decision"),
            _column("By", ".spec.decidedBy"),
            _column("Expires", ".spec.request.expiresAt"),
            _AGE,
        ),
    ),
)


def kind_schema(kind: Kind) -> Schema:
    """The schema of a whole object. Metadata is the API server's own; an unseen object is not ready (kstatus)."""
    schema = structural(kind.model)
    properties = schema["properties"]
    for name in ("apiVersion", "kind"):
        properties[name] = {"type": "string"}
    properties["metadata"] = {"type": "object"}
    properties["status"]["default"] = {"observedGeneration": -1}
    schema["required"] = ["spec"]
    return schema


def crd(kind: Kind) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["pilothouse"],
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": list(kind.columns),
                    "schema": {"openAPIV3Schema": kind_schema(kind)},
                }
            ],
        },
    }


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True  # kubectl reads anchors, people do not


def render(kind: Kind) -> str:
    """The CRD as YAML, always the same bytes for the same models."""
    text = yaml.dump(
        crd(kind), Dumper=_PlainDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=120
    )
    if len(text.encode()) > MAX_BYTES:
        raise ValueError(f"{kind.file_name} would have {len(text.encode())} bytes, more than {MAX_BYTES}")
    return f"# Generated from pilothouse.api by `make crds`; do not edit.\n{text}"


def drifted(directory: Path) -> list[Path]:
    """The files that differ from what the models say, or are missing."""
    files = ((directory / kind.file_name, render(kind)) for kind in KINDS)
    return [path for path, text in files if not path.is_file() or path.read_text(encoding="utf-8") != text]


def write(directory: Path) -> None:
    """Write all CRDs."""
    directory.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        (directory / kind.file_name).write_text(render(kind), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Write the CRDs or, with --check, return 1 and name each file that is not up to date."""
    parser = argparse.ArgumentParser(prog="python -m pilothouse.api.crd", description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not up to date")
    options = parser.parse_args(arguments)
    if not options.check:
        write(options.directory)
        return 0
    stale = drifted(options.directory)
    for path in stale:
        sys.stderr.write(f"{path} is not up to date: run `make crds`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
