"""Argo's source as its Go module has it, and the two programs that are compiled from it, once."""

import fcntl
import json
import os
import shutil
from pathlib import Path

from bench.cluster.argo import VERSION
from e2e.cluster import toolchain
from e2e.cluster.binaries import MODULES
from e2e.cluster.commands import run, say
from e2e.cluster.layout import Layout

PROGRAMS = ("workflow-controller", "argoexec")

_MODULE = "github.com/argoproj/argo-workflows/v4"
_SUM = "h1:/1lru5oXUd+k6KEDUps6rLX5OKfi1jTfabgXTly/VFU="
"""As a go.sum has it. The module's own go.sum pins all that it needs."""

_LOST = {"workflow/executor/osspecific/signal_linux.go": "signal_darwin.go"}
"""Symbolic links of Argo's repository, which no module archive can hold, and the files that they lead to."""

_BUILD_SECONDS = 3600


def ensure(layout: Layout) -> Path:
    """The folder of both programs, and below `source` of what they were compiled from; it is made if need be."""
    folder = layout.cache / f"argo-{VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        toolchain.require(MODULES)
        if not (folder / "source").exists():
            _copy(folder / "source")
        for program in PROGRAMS:
            if not (folder / program).exists():
                say(f"building Argo's {program}: minutes, once …")
                _build(folder / "source", program, folder / program)
    return folder


def _copy(source: Path) -> None:
    """The module as it was published, with its links again. A module in Go's own cache cannot be added to."""
    module = json.loads(run("go", "mod", "download", "-json", f"{_MODULE}@{VERSION}", timeout=600))
    assert module["Sum"] == _SUM, f"{_MODULE}@{VERSION} has the sum {module['Sum']}, not {_SUM}"
    draft = source.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    run("cp", "--recursive", "--no-preserve=mode", module["Dir"], draft, timeout=300)
    for lost, target in _LOST.items():
        (draft / lost).symlink_to(target)
    draft.rename(source)


def _build(source: Path, program: str, target: Path) -> None:
    """As Argo's Makefile does: without C, stripped, and told the version, after which the executor's image is named."""
    draft = target.with_suffix(".draft")
    flags = f"-s -w -X {_MODULE}.version={VERSION}"
    environment = {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": "-buildvcs=false"}
    command = ("go", "build", "-trimpath", "-ldflags", flags, "-o", draft, f"./cmd/{program}")
    run(*command, env=environment, cwd=source, timeout=_BUILD_SECONDS)
    os.replace(draft, target)
