"""The image of a Pod's first process, which is made by hand."""

import hashlib
import io
import json
import tarfile

from e2e.cluster.configuration import PAUSE_IMAGE
from e2e.cluster.containerd import pause_archive


def contents(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {name: opened.extractfile(name).read() for name in opened.getnames()}  # type: ignore[union-attr]


def test_the_archive_names_its_image_and_its_layer() -> None:
    files = contents(pause_archive(b"program"))
    (manifest,) = json.loads(files["manifest.json"])
    assert manifest["RepoTags"] == [PAUSE_IMAGE]
    (layer,) = (files[name] for name in manifest["Layers"])
    (digest,) = json.loads(files[manifest["Config"]])["rootfs"]["diff_ids"]
    assert digest == f"sha256:{hashlib.sha256(layer).hexdigest()}"
    assert contents(layer) == {"pause": b"program"}
