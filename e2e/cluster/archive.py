"""Image archives, written by hand.

A builder writes an image whole, some 300 MB; a node mostly has all but the last few layers of it already. So what is
imported is an OCI image layout made of the builder's archive, which leaves out the layers that are there.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

_CONFIG = "application/vnd.oci.image.config.v1+json"
_LAYER = "application/vnd.oci.image.layer.v1.tar"
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
# By this annotation containerd names what it imports.
_NAME = "io.containerd.image.name"

Descriptor = dict[str, Any]


def save(image: str, program: bytes, config: Mapping[str, Any], saved: Path, name: str = "program") -> None:
    """Writes an archive in the format of `docker save`: an image of one layer, with one program in it, of that name."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as files:
        _add(files, name, program, mode=0o755)
    digest = _digest(layer.getvalue())
    config = {**config, "rootfs": {"type": "layers", "diff_ids": [digest]}}
    manifest = [{"Config": "config.json", "RepoTags": [image], "Layers": ["layer.tar"]}]
    with tarfile.open(saved, "w") as archive:
        _add(archive, "layer.tar", layer.getvalue())
        _add(archive, "config.json", json.dumps(config).encode())
        _add(archive, "manifest.json", json.dumps(manifest).encode())


def without_layers(saved: Path, present: Collection[str], layout: Path) -> None:
    """Writes the image layout of an archive in the format of `docker save`, which holds one image.

    `present` are the digests that need not be in it. A layer is known by that of its uncompressed form, as all images
    that were imported this way have it.
    """
    with tarfile.open(saved) as source, tarfile.open(layout, "w") as target:
        (image,) = json.loads(_content(source, "manifest.json"))
        config = _content(source, image["Config"])
        digests = json.loads(config)["rootfs"]["diff_ids"]
        layers = [
            _layer(source, name, digest, target, present) for name, digest in zip(image["Layers"], digests, strict=True)
        ]
        parts = {"config": _blob(target, _CONFIG, config), "layers": layers}
        manifest = json.dumps({"schemaVersion": 2, "mediaType": _MANIFEST, **parts}).encode()
        named = _blob(target, _MANIFEST, manifest) | {"annotations": {_NAME: image["RepoTags"][0]}}
        _add(target, "index.json", json.dumps({"schemaVersion": 2, "manifests": [named]}).encode())
        _add(target, "oci-layout", b'{"imageLayoutVersion": "1.0.0"}')


def _layer(
    source: tarfile.TarFile, name: str, digest: str, target: tarfile.TarFile, present: Collection[str]
) -> Descriptor:
    """Copies a layer unless it is present; a link leads to a layer that comes twice."""
    content = _content(source, name)
    if digest not in present:
        _add(target, _path(digest), content)
    return _descriptor(_LAYER, digest, len(content))


def _blob(target: tarfile.TarFile, kind: str, content: bytes) -> Descriptor:
    digest = _digest(content)
    _add(target, _path(digest), content)
    return _descriptor(kind, digest, len(content))


def _descriptor(kind: str, digest: str, size: int) -> Descriptor:
    return {"mediaType": kind, "digest": digest, "size": size}


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _path(digest: str) -> str:
    return f"blobs/{digest.replace(':', '/')}"


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    """The content of a file of the archive, or of what a link of that name leads to."""
    file = archive.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is no file of the archive")
    return file.read()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
