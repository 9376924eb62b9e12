"""Rendering the chart with the real Helm."""

import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from e2e.cluster import binaries
from e2e.cluster.layout import Layout

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "pilothouse"

KUBERNETES = "1.33.0"
"""The oldest version that the chart installs on."""

Object = dict[str, Any]

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Refused(Exception):  # noqa: N818
    """Helm does not render the chart with these values; the text says why."""


@cache
def helm() -> str:
    """The Helm of the test cluster, built where it is not there yet; without a Go toolchain the one on PATH."""
    program = next(each for each in binaries.CLIENTS if each.name == "helm")
    if shutil.which("go") is None and (found := shutil.which("helm")):
        return found
    return str(binaries.ensure(Layout.of(), (program,)) / program.name)


@dataclass(frozen=True)
class Render:
    """What Helm made of the chart."""

    objects: list[Object]

    @classmethod
    def of(
        cls, *values: str, release: str = "pilothouse", namespace: str = "pilothouse", program: str = ""
    ) -> "Render":
        """With each `name=value` of `values` set. Raises Refused."""
        settings = [word for value in values for word in ("--set", value)]
        command = [program or helm(), "template", release, str(CHART), "--namespace", namespace]
        done = subprocess.run(
            [*command, "--kube-version", KUBERNETES, *settings], capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise Refused(done.stderr)
        return cls([each for each in yaml.load_all(done.stdout, _LOADER) if each])

    def kind(self, *kinds: str) -> list[Object]:
        """All objects of these kinds."""
        return [each for each in self.objects if each["kind"] in kinds]

    def one(self, kind: str, name: str) -> Object:
        """The object of that kind and name. Raises KeyError, telling which there are."""
        for each in self.kind(kind):
            if each["metadata"]["name"] == name:
                return each
        raise KeyError(f"no {kind} {name}, only {self.names(kind)}")

    def names(self, kind: str) -> list[str]:
        """The names of all objects of that kind."""
        return [each["metadata"]["name"] for each in self.kind(kind)]

    def pods(self) -> dict[str, Object]:
        """The spec of each Pod that the objects make, by `kind/name`."""
        makers = self.kind("Deployment", "StatefulSet", "Job")
        return {f"{each['kind']}/{each['metadata']['name']}": each["spec"]["template"]["spec"] for each in makers}


def containers(pod: Object) -> Iterable[Object]:
    """All containers of a Pod."""
    return [*pod.get("initContainers", []), *pod["containers"]]
