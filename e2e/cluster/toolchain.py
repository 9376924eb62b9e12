"""The Go toolchain that compiles the programs."""

import os
import re
import shutil
from pathlib import Path

from e2e.cluster.commands import run, succeeds
from e2e.cluster.errors import ClusterError

# From this version on, Go fetches the later toolchain that a module asks for, unless GOTOOLCHAIN=local forbids it.
OLDEST = (1, 24)

Version = tuple[int, ...]


USUAL = Path("/usr/local/go/bin")
"""Where Go's own instructions install it. Many a shell has it on PATH, and a job's environment often has not."""


def require(modules: Path, usual: Path = USUAL) -> None:
    """Raises ClusterError unless a Go is there that can build the modules. From here on it is on PATH."""
    if shutil.which("go") is None and (usual / "go").is_file():
        os.environ["PATH"] += f"{os.pathsep}{usual}"
    if not succeeds("go", "version"):
        raise ClusterError(
            f"Go {_shown(OLDEST)} or later is needed to compile Kubernetes, and there is no `go` on PATH"
        )
    have = parse(run("go", "env", "GOVERSION"))
    local = run("go", "env", "GOTOOLCHAIN").strip() == "local"
    if problem := refusal(have, needed(modules), local=local):
        raise ClusterError(problem)


def refusal(have: Version, need: Version, *, local: bool) -> str | None:
    """Says why Go `have` cannot build modules that ask for Go `need`; None if it can."""
    if have < OLDEST:
        return f"Go {_shown(OLDEST)} or later is needed to compile Kubernetes; `go version` says {_shown(have)}"
    if local and have < need:
        return (
            f"a module asks for Go {_shown(need)}; `go version` says {_shown(have)}, and GOTOOLCHAIN=local forbids Go "
            f"to fetch it: install Go {_shown(need)}, or set GOTOOLCHAIN=auto"
        )
    return None


def needed(modules: Path) -> Version:
    """The latest Go that a module's `go` line asks for."""
    lines = (line for file in modules.glob("*/go.mod") for line in file.read_text().splitlines())
    return max(parse(line) for line in lines if line.startswith("go "))


def parse(text: str) -> Version:
    """The version in `go 1.26.0` or `go1.26.8`; of a development version, the release that it comes from."""
    found = re.search(r"go ?(\d+(?:\.\d+)*)", text)
    if found is None:
        raise ClusterError(f"no version of Go in {text.strip()!r}")
    return tuple(map(int, found.group(1).split(".")))


def _shown(version: Version) -> str:
    return ".".join(map(str, version))
