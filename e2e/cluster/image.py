"""The image under test: built from the root Dockerfile, named by the digest of what goes in, and taken onto the node.

Where a container engine answers, that builds it; elsewhere buildah does, without any daemon.
"""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from e2e.cluster import mounts, pipconfig, prerequisites, standin
from e2e.cluster.commands import run, say, succeeds
from e2e.cluster.engine import Engine
from e2e.cluster.layout import Layout
from e2e.cluster.standin import Buildah

CHECKOUT = Path(__file__).parents[2]
# What the Dockerfile copies, and itself.
INPUTS = (
    "Dockerfile",
    ".dockerignore",
    "pyproject.toml",
    "constraints.txt",
    "README.md",
    "LICENSE",
    "engine",
    "operator",
)
# As Kubernetes completes the name `pilothouse` in a Pod.
REPOSITORY = "docker.io/library/pilothouse"
NEWEST = f"{REPOSITORY}:dev"

_BUILD_SECONDS = 1800
_KEPT = 5


class Node(Protocol):
    """Where images are run."""

    def has(self, image: str) -> bool:
        """Tells whether the image is there."""
        ...

    def load(self, archive: Path) -> None:
        """Takes the image from an archive in the format of `docker save`."""
        ...

    def tag(self, image: str, name: str) -> None:
        """Gives an image a second name, which another may have had before."""
        ...


def ensure(layout: Layout, engine: Engine | None, node: Node | None) -> str:
    """Builds the image of this checkout, takes it onto the node, each unless that was done before; returns its name."""
    folder = layout.cache / "image"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock, _snapshot() as context:
        fcntl.flock(lock, fcntl.LOCK_EX)
        builder = _EngineBuilder(engine) if engine else _BuildahBuilder(folder)
        image = f"{REPOSITORY}:{digest(context)}"
        if not builder.has(image):
            say(f"building {image} …")
            builder.build(image, context)
        say(f"{image}: {builder.size(image)}")
        if node and not node.has(image):
            say("taking it onto the node …")
            archive = folder / "image.tar"
            archive.unlink(missing_ok=True)
            builder.save(image, archive)
            node.load(archive)
            archive.unlink()
        if node:
            node.tag(image, NEWEST)
    return image


def digest(context: Path) -> str:
    """The digest of names, modes and contents of all files of a folder."""
    content = hashlib.sha256()
    for file in sorted(path for path in context.rglob("*") if path.is_file()):
        name, executable = file.relative_to(context), file.stat().st_mode & 0o100
        content.update(f"\0{name}\0{executable}\0".encode() + file.read_bytes())
    return content.hexdigest()[:12]


@contextmanager
def _snapshot() -> Iterator[Path]:
    """A copy of the inputs as they are now: the image is what its name says, also while somebody edits."""
    with tempfile.TemporaryDirectory() as folder:
        for name in INPUTS:
            source, copy = CHECKOUT / name, Path(folder) / name
            if source.is_dir():
                shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", "*.py[co]"))
            else:
                shutil.copy2(source, copy)
        yield Path(folder)


class _EngineBuilder:
    """Builds with Docker or Podman, which have their own ways to a registry and an index."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def has(self, image: str) -> bool:
        return succeeds(self._engine, "image", "inspect", image)

    def build(self, image: str, context: Path) -> None:
        run(self._engine, "build", "--tag", image, context, timeout=_BUILD_SECONDS)

    def size(self, image: str) -> str:
        return f"{int(run(self._engine, 'image', 'inspect', '--format', '{{.Size}}', image)) / 1e6:.0f} MB"

    def save(self, image: str, archive: Path) -> None:
        run(self._engine, "save", "--output", archive, image, timeout=300)


class _BuildahBuilder:
    """Builds with buildah, in a store of our own."""

    def __init__(self, folder: Path) -> None:
        prerequisites.require(prerequisites.IMAGE)
        self._folder = folder
        self._buildah = Buildah(folder)

    def has(self, image: str) -> bool:
        return self._buildah.succeeds("inspect", "--type=image", image)

    def build(self, image: str, context: Path) -> None:
        standin.ensure(self._buildah, self._folder)
        isolation = ("--isolation=chroot", "--network=host", "--pull-never")
        secrets = (f"--secret={secret}" for secret in pipconfig.secrets(self._folder))
        try:
            self._buildah("bud", "--layers", *isolation, *secrets, "--tag", image, context, timeout=_BUILD_SECONDS)
        finally:
            self._buildah("rm", "--all")
            mounts.remove(self._folder)
        self._forget_outdated(image)

    def size(self, image: str) -> str:
        return self._buildah("images", "--noheading", "--format={{.Size}}", image).strip()

    def save(self, image: str, archive: Path) -> None:
        self._buildah("push", image, f"docker-archive:{archive}:{image}", timeout=300)

    def _forget_outdated(self, image: str) -> None:
        """Keeps this image whatever its age: one that was made of cached layers alone is as old as they are."""
        listed = self._buildah("images", "--noheading", "--format={{.Name}}:{{.Tag}}").split()  # the newest first
        for outdated in [name for name in listed if name.startswith(REPOSITORY)][_KEPT:]:
            if outdated != image:
                self._buildah("rmi", outdated)
