"""The image's name, and what goes in."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from e2e.cluster import image, standin
from e2e.cluster.image import CHECKOUT, INPUTS
from e2e.cluster.layout import Layout

Put = Callable[[str, str], None]


def test_what_the_dockerfile_copies_is_what_the_name_is_made_of() -> None:
    text = (CHECKOUT / "Dockerfile").read_text()
    copied = {name for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for name in line.split()}
    assert copied | {"Dockerfile", ".dockerignore"} == set(INPUTS)


def test_what_the_dockerfile_copies_is_not_kept_from_it() -> None:
    admitted = re.findall(r"^!(.+)$", (CHECKOUT / ".dockerignore").read_text(), re.MULTILINE)
    assert set(admitted) == set(INPUTS) - {"Dockerfile", ".dockerignore"}


def test_another_content_name_or_mode_is_another_image(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("x")
    before = image.digest(tmp_path)
    file.touch()
    assert image.digest(tmp_path) == before
    file.chmod(0o755)
    executable = image.digest(tmp_path)
    file.write_text("y")
    changed = image.digest(tmp_path)
    file.rename(tmp_path / "b")
    assert len({before, executable, changed, image.digest(tmp_path)}) == 4


def test_all_stages_come_from_one_base() -> None:
    text = (CHECKOUT / "Dockerfile").read_text()
    stages = set(re.findall(r" AS (\w+)$", text, re.MULTILINE))
    bases = set(re.findall(r"^FROM (\S+)", text, re.MULTILINE)) - stages
    assert bases == {standin.BASE.removeprefix("docker.io/library/")}


class Node:
    """A node that notes what it has."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.loads = 0

    def has(self, image: str) -> bool:
        return image in self.names

    def load(self, archive: Path) -> None:
        name = archive.read_text()
        self.names[name] = name
        self.loads += 1

    def tag(self, image: str, name: str) -> None:
        self.names[name] = self.names[image]


# A docker that has each image that it was asked to build, and saves an image as its name.
DOCKER = """
for last in "$@"; do :; done
case $1 in
  image) grep -qx "$last" "$0.built" 2>/dev/null && echo 1000000 ;;
  build) echo "$3" >> "$0.built" ;;
  save) printf %s "$last" > "$3" ;;
esac
"""


def test_builds_and_loads_once_and_the_newest_is_what_the_checkout_holds(
    layout: Layout, program: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("docker", DOCKER)
    checkout, node = tmp_path / "checkout", Node()
    for folder in ("engine", "operator"):
        (checkout / folder).mkdir(parents=True)
    for name in set(INPUTS) - {"engine", "operator"}:
        (checkout / name).touch()
    monkeypatch.setattr(image, "CHECKOUT", checkout)
    first = image.ensure(layout, "docker", node)
    (checkout / "engine" / "new.py").touch()
    second = image.ensure(layout, "docker", node)
    assert first != second
    assert node.names[image.NEWEST] == second
    (checkout / "engine" / "new.py").unlink()
    assert image.ensure(layout, "docker", node) == first
    assert node.names[image.NEWEST] == first
    assert node.loads == 2
