"""Image archives: what is in them, and what is left out."""

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from e2e.cluster import archive

NAME = "localhost/pause:1"
CONFIG = {"os": "linux", "config": {"Entrypoint": ["/program"]}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "saved.tar"
    archive.save(NAME, b"what runs", CONFIG, path)
    return path


def contents(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as opened:
        return {name: opened.extractfile(name).read() for name in opened.getnames()}  # type: ignore[union-attr]


def layout(saved: Path, present: set[str]) -> dict[str, bytes]:
    path = saved.with_name("layout.tar")
    archive.without_layers(saved, present, path)
    return contents(path)


def followed(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    """The blob that a descriptor names; its digest and size are right."""
    blob = files[f"blobs/{descriptor['digest'].replace(':', '/')}"]
    assert descriptor["digest"] == f"sha256:{hashlib.sha256(blob).hexdigest()}"
    assert descriptor["size"] == len(blob)
    return blob


def test_the_layout_leads_from_the_name_to_the_program(saved: Path, tmp_path: Path) -> None:
    files = layout(saved, set())
    (named,) = json.loads(files["index.json"])["manifests"]
    assert named["annotations"] == {"io.containerd.image.name": NAME}
    manifest = json.loads(followed(files, named))
    config = json.loads(followed(files, manifest["config"]))
    (layer,) = manifest["layers"]
    assert config["config"] == {"Entrypoint": ["/program"]}
    assert config["rootfs"]["diff_ids"] == [layer["digest"]]
    (tmp_path / "layer.tar").write_bytes(followed(files, layer))
    with tarfile.open(tmp_path / "layer.tar") as opened:
        (program,) = opened.getmembers()
    assert (program.name, program.mode) == ("program", 0o755)
    assert contents(tmp_path / "layer.tar") == {"program": b"what runs"}


def test_a_program_may_have_a_path_of_its_own(saved: Path, tmp_path: Path) -> None:
    archive.save(NAME, b"what runs", CONFIG, saved, "bin/runs")
    (tmp_path / "layer.tar").write_bytes(contents(saved)["layer.tar"])
    assert contents(tmp_path / "layer.tar") == {"bin/runs": b"what runs"}


def test_a_layer_that_is_there_already_is_named_and_left_out(saved: Path) -> None:
    whole = layout(saved, set())
    (digest,) = json.loads(contents(saved)["config.json"])["rootfs"]["diff_ids"]
    blob = f"blobs/{digest.replace(':', '/')}"
    assert {name: content for name, content in whole.items() if name != blob} == layout(saved, {digest})
    assert blob in whole
