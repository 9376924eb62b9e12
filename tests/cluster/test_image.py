"""The image's name, and what goes in."""

import re
from pathlib import Path

from e2e.cluster import image, standin
from e2e.cluster.image import CHECKOUT, INPUTS


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
