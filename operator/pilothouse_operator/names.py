"""Names and labels of what the operator makes. All carry the installation, so two releases never meet."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pilothouse.api.base import API_VERSION, GROUP
from pilothouse.records.runs import Attempt, RunRef

MANAGED_BY = "app.kubernetes.io/managed-by"
INSTALLATION = f"{GROUP}/installation"
WORKFLOW = f"{GROUP}/workflow"
RUN = f"{GROUP}/run"
STEP = f"{GROUP}/step"
ATTEMPT = f"{GROUP}/attempt"
ROLE = f"{GROUP}/role"

SELECTOR = f"{MANAGED_BY}=pilothouse"
"""Selects the Pods of every installation; which are ours, the label `installation` says."""

_OUTSIDE = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class Owner:
    """The Workflow whose run it is."""

    namespace: str
    name: str
    uid: str

    def reference(self) -> Mapping[str, Any]:
        """Deleting the Workflow deletes what refers to it, also while the operator is away."""
        return {
            "apiVersion": API_VERSION,
            "kind": "Workflow",
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": False,
        }


def pod_name(workflow: str, attempt: Attempt) -> str:
    """Derived from the attempt's nonce alone as far as it must be unique; the words before it are for people."""
    return f"{_slug(workflow, 24)}-{_slug(attempt.step.path, 20)}-{attempt.nonce[:12]}"


def labels(installation: UUID, workflow: str, attempt: Attempt, role: str) -> Mapping[str, str]:
    """`role` is one of those of `pods`."""
    run: RunRef = attempt.ref.run
    return {
        MANAGED_BY: "pilothouse",
        INSTALLATION: str(installation),
        WORKFLOW: workflow[:63],
        RUN: str(run.run),
        STEP: _slug(attempt.step.path, 63),
        ATTEMPT: str(attempt.ref.attempt),
        ROLE: role,
    }


def _slug(text: str, longest: int) -> str:
    """The text in the letters that names may have, cut, and never empty."""
    return _OUTSIDE.sub("-", text.lower())[:longest].strip("-") or "x"
