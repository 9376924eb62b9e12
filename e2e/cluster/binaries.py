"""The programs that are compiled from Go modules, kept in a folder named by all that goes into them.

Go's own build cache makes a second build a matter of seconds; the folder makes it a matter of none.
"""

import fcntl
import hashlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from e2e.cluster import toolchain
from e2e.cluster.commands import run, say
from e2e.cluster.layout import Layout

MODULES = Path(__file__).parent / "modules"
KUBERNETES = "v1.34.4"

_STRIPPED = "-s -w"
_BUILD_SECONDS = 3600
# `kubectl version` and every /version answer say what Kubernetes' own build scripts would have set.
_VERSION = {
    "gitVersion": KUBERNETES,
    "gitMajor": KUBERNETES[1:].split(".")[0],
    "gitMinor": KUBERNETES.split(".")[1],
    "gitTreeState": "clean",
    "gitCommit": "none",
    "buildDate": "2026-01-01T00:00:00Z",
}
_VERSIONED = " ".join(
    (_STRIPPED, *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in _VERSION.items()))
)


@dataclass(frozen=True)
class Program:
    """A program: its name, the folder of its module below `modules/`, its package and the linker's flags."""

    name: str
    module: str
    package: str = "."
    flags: str = _STRIPPED


CLIENTS = (
    Program("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", _VERSIONED),
    Program("helm", "helm", "helm.sh/helm/v4/cmd/helm"),
)
NODE = (
    Program("etcd", "kubernetes", "go.etcd.io/etcd/server/v3", _VERSIONED),
    Program("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", _VERSIONED),
    Program("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", _VERSIONED),
    Program("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", _VERSIONED),
    Program("kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", _VERSIONED),
    Program("kube-proxy", "kubernetes", "k8s.io/kubernetes/cmd/kube-proxy", _VERSIONED),
    Program("coredns", "dns"),
    Program("kube-router", "netpol", "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"),
    Program("pause", "pause"),
)


def folder(layout: Layout) -> Path:
    """The folder of the programs; another version, lock or flag makes another folder."""
    return layout.cache / f"bin-{digest(MODULES, (*NODE, *CLIENTS))}"


def digest(modules: Path, programs: Iterable[Program]) -> str:
    """The digest of what goes into the programs: their sources and locks, packages and flags."""
    content = hashlib.sha256()
    for program in sorted(programs, key=lambda each: each.name):
        content.update(repr(program).encode())
    for file in sorted(path for path in modules.rglob("*") if path.is_file()):
        content.update(f"\0{file.relative_to(modules)}\0".encode() + file.read_bytes())
    return content.hexdigest()[:12]


def ensure(layout: Layout, programs: tuple[Program, ...]) -> Path:
    """Builds the programs that are not there yet, whoever else asks for the same, and returns their folder."""
    target = folder(layout)
    target.mkdir(parents=True, exist_ok=True)
    with (target / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [program for program in programs if not (target / program.name).exists()]
        if missing:
            toolchain.require(MODULES)
            say("compiling Kubernetes: about 15 minutes on two cores, once; seconds where Go's build cache is warm")
        for number, program in enumerate(missing, start=1):
            say(f"building {program.name}, {number} of {len(missing)} …")
            _build(program, target)
    return target


def _build(program: Program, target: Path) -> None:
    """Builds under another name first, so that a program under its own name is always whole."""
    began = time.monotonic()
    draft = target / f".{program.name}.draft"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
    command = ("go", "build", "-trimpath", "-ldflags", program.flags, "-o", draft, program.package)
    run(*command, env=environment, cwd=MODULES / program.module, timeout=_BUILD_SECONDS)
    os.replace(draft, target / program.name)
    say(f"built {program.name} in {time.monotonic() - began:.0f} s")
