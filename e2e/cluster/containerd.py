"""The container runtime of a native cluster: its images, and the one image that is made by hand."""

import hashlib
import io
import json
import platform
import tarfile
from pathlib import Path

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


def load(layout: Layout, archive: Path) -> None:
    """Imports the images of an archive, in the format of `docker save`."""
    run(*_ctr(layout), "images", "import", archive, timeout=300)


def tag(layout: Layout, image: str, name: str) -> None:
    """Gives an image another name, which may have belonged to an older one."""
    run(*_ctr(layout), "images", "tag", "--force", image, name)


def load_pause(layout: Layout, program: Path) -> None:
    """Makes and imports the image of a Pod's first process."""
    if not has(layout, PAUSE_IMAGE):
        archive = layout.run / "pause.tar"
        archive.write_bytes(pause_archive(program.read_bytes()))
        load(layout, archive)
        archive.unlink()


def pause_archive(program: bytes) -> bytes:
    """An image archive of one layer with one file."""
    layer = _tar({"pause": program}, mode=0o755)
    config = {
        "architecture": _MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [PAUSE_IMAGE], "Layers": ["layer.tar"]}]
    files = {"manifest.json": json.dumps(manifest), "config.json": json.dumps(config)}
    return _tar({"layer.tar": layer, **{name: content.encode() for name, content in files.items()}}, mode=0o644)


def kill(layout: Layout, container: str) -> None:
    """Ends all processes of a container with SIGKILL, as the kernel or an operator's mistake would."""
    run(*_ctr(layout), "tasks", "kill", "--signal", "SIGKILL", "--all", container)


def _tar(files: dict[str, bytes], mode: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def _ctr(layout: Layout) -> tuple[str, ...]:
    return ("ctr", "--address", str(layout.socket), "--namespace", "k8s.io")
