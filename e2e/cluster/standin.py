"""The base image where no registry answers: a stand-in of the same name, made of Debian's own packages by debootstrap.

It is made anew each month, for Debian's security updates, and when its recipe changes.
"""

import datetime
import hashlib
import shutil
from pathlib import Path

from e2e.cluster import mounts
from e2e.cluster.commands import run, say, succeeds
from e2e.cluster.errors import ClusterError

BASE = "docker.io/library/python:3.13-slim-trixie"

_SUITE = "trixie"
_PACKAGES = ("python3", "python3-venv", "ca-certificates")
# What a slim image does without.
_USELESS = ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man", "usr/share/info")
_LOCALES = "usr/share/locale"
_COMMANDS = {"python": "/usr/bin/python3", "python3": "/usr/bin/python3"}
_PATH = "/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin"
_LABEL = "dev.pilothouse.stand-in"


class Buildah:
    """Runs buildah on a store of ours, apart from the machine's own."""

    def __init__(self, folder: Path) -> None:
        self._words = ("buildah", f"--root={folder}/store", "--runroot=/run/pilothouse-image")

    def __call__(self, *arguments: str | Path, timeout: float = 120) -> str:
        """Returns buildah's stdout; raises ClusterError with its message if it fails."""
        return run(*self._words, *arguments, timeout=timeout)

    def succeeds(self, *arguments: str) -> bool:
        """Tells whether buildah ends with code 0."""
        return succeeds(*self._words, *arguments)


def ensure(buildah: Buildah, folder: Path) -> None:
    """Sees to it that the base image is in the store: the real one if a registry gives it, else the stand-in."""
    if _is_there(buildah):
        return
    try:
        buildah("pull", "--policy=always", BASE, timeout=300)
    except ClusterError:
        say(f"no registry gives {BASE}: making a stand-in with debootstrap, about two minutes, once a month …")
        _make(buildah, folder / "stand-in")


def recipe(today: datetime.date) -> str:
    """What the stand-in is made by, and in which month."""
    content = repr((_SUITE, _PACKAGES, _USELESS, _COMMANDS))
    return f"{hashlib.sha256(content.encode()).hexdigest()[:12]}-{today:%Y-%m}"


def _is_there(buildah: Buildah) -> bool:
    if not buildah.succeeds("inspect", "--type=image", BASE):
        return False
    form = f'{{{{index .OCIv1.Config.Labels "{_LABEL}"}}}}'
    return buildah("inspect", "--type=image", f"--format={form}", BASE).strip() in ("", recipe(_today()))


def _make(buildah: Buildah, root: Path) -> None:
    _clear(root)
    try:
        run("debootstrap", "--variant=minbase", f"--include={','.join(_PACKAGES)}", _SUITE, root, timeout=1800)
        _slim(root)
        _pack(buildah, root)
    finally:
        _clear(root)


def _clear(root: Path) -> None:
    """Removes the folder, with what an interrupted debootstrap left mounted in it."""
    mounts.remove(root)
    shutil.rmtree(root, ignore_errors=True)


def _slim(root: Path) -> None:
    for folder in _USELESS:
        shutil.rmtree(root / folder)
        (root / folder).mkdir()
    shutil.rmtree(root / _LOCALES)
    (root / "var/cache/apt/archives/partial").mkdir(parents=True)
    (root / "etc/resolv.conf").unlink()  # this machine's
    for name, target in _COMMANDS.items():
        (root / "usr/local/bin" / name).symlink_to(target)


def _pack(buildah: Buildah, root: Path) -> None:
    container = buildah("from", "scratch").strip()
    buildah("add", "--quiet", container, root, "/", timeout=300)
    buildah("config", "--cmd=python3", f"--env=PATH={_PATH}", f"--label={_LABEL}={recipe(_today())}", container)
    buildah("commit", "--quiet", "--rm", container, BASE, timeout=300)


def _today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.UTC).date()
