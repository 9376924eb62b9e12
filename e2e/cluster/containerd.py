"""The container runtime of a native cluster, and the images that it has."""

import platform
from pathlib import Path

from e2e.cluster import archive
from e2e.cluster.commands import run, succeeds
from e2e.cluster.configuration import PAUSE_IMAGE
from e2e.cluster.layout import Layout

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def answers(layout: Layout) -> bool:
    """Tells whether the runtime answers on its socket."""
    return layout.socket.exists() and succeeds(*_ctr(layout), "version")


def has(layout: Layout, image: str) -> bool:
    """Tells whether the runtime has an image of this full name."""
    return run(*_ctr(layout), "images", "list", "-q", f"name=={image}").strip() == image


def load(layout: Layout, saved: Path) -> None:
    """Imports the image of an archive in the format of `docker save`."""
    present = run(*_ctr(layout), "content", "list", "--quiet").split()
    lacking = saved.with_suffix(".layout.tar")
    archive.without_layers(saved, set(present), lacking)
    run(*_ctr(layout), "images", "import", lacking, timeout=300)
    lacking.unlink()


def tag(layout: Layout, image: str, name: str) -> None:
    """Gives an image another name, which may have belonged to an older one."""
    run(*_ctr(layout), "images", "tag", "--force", image, name)


def load_pause(layout: Layout, program: Path) -> None:
    """Makes and imports the image of a Pod's first process."""
    if not has(layout, PAUSE_IMAGE):
        machine = _MACHINES.get(platform.machine(), platform.machine())
        saved = layout.run / "pause.tar"
        config = {"architecture": machine, "os": "linux", "config": {"Entrypoint": ["/program"], "User": "65535:65535"}}
        archive.save(PAUSE_IMAGE, program.read_bytes(), config, saved)
        load(layout, saved)
        saved.unlink()


def kill(layout: Layout, container: str) -> None:
    """Ends all processes of a container with SIGKILL, as the kernel or an operator's mistake would."""
    run(*_ctr(layout), "tasks", "kill", "--signal", "SIGKILL", "--all", container)


def _ctr(layout: Layout) -> tuple[str, ...]:
    return ("ctr", "--address", str(layout.socket), "--namespace", "k8s.io")
