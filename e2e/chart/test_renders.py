"""The chart renders what is checked in, under every Helm that is here, and nothing of it can hang an uninstall."""

import difflib
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import pilothouse
from e2e.chart.golden import texts
from e2e.chart.rendering import CHART, ROOT, Render, containers, helm


def test_lint_finds_nothing() -> None:
    told = subprocess.run([helm(), "lint", "--strict", CHART], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_the_checked_in_renders_are_what_the_chart_makes() -> None:
    for path, wanted in texts().items():
        shown = "\n".join(difflib.unified_diff(path.read_text().splitlines(), wanted.splitlines(), lineterm="", n=1))
        assert not shown, f"{path.name}: look at the difference, then `python -m e2e.chart`\n{shown}"


def test_the_chart_and_the_program_have_one_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == pilothouse.__version__


@pytest.mark.parametrize("program", ["helm3"])
def test_the_helm_of_before_renders_the_same(program: str) -> None:
    if (found := shutil.which(program)) is None:
        pytest.skip(f"there is no {program} on PATH")
    old, new = Render.of(program=found), Render.of()
    for one, other in zip(old.objects, new.objects, strict=True):
        if one["kind"] not in ("Secret", "Deployment", "StatefulSet"):  # these hold what each render makes anew
            assert one == other


def test_the_definitions_are_those_of_the_models_and_outlive_the_release() -> None:
    rendered = {each["metadata"]["name"]: each for each in Render.of().kind("CustomResourceDefinition")}
    files = sorted((ROOT / "crds").glob("*.yaml"))
    assert len(files) == len(rendered) == 4
    for file in files:
        assert file.read_bytes() == (CHART / "files" / "crds" / file.name).read_bytes(), "`python -m e2e.chart`"
        wanted = yaml.safe_load(file.read_text())
        found = rendered[wanted["metadata"]["name"]]
        assert found["spec"] == wanted["spec"]
        assert found["metadata"]["annotations"] == {
            "helm.sh/resource-policy": "keep",
            "kustomize.toolkit.fluxcd.io/substitute": "disabled",
        }


def test_the_definitions_can_be_left_out_or_left_to_be_deleted() -> None:
    assert not Render.of("crds.enabled=false").kind("CustomResourceDefinition")
    for each in Render.of("crds.keep=false").kind("CustomResourceDefinition"):
        assert "helm.sh/resource-policy" not in each["metadata"]["annotations"]


def test_nothing_has_a_finalizer_and_the_check_alone_is_a_hook() -> None:
    render = Render.of("namespaces.served={team-a}")
    assert not [each for each in render.objects if "finalizers" in each["metadata"]]
    hooks = [each for each in render.objects if "helm.sh/hook" in each["metadata"].get("annotations", {})]
    assert [(each["kind"], each["metadata"]["name"]) for each in hooks] == [("Job", "pilothouse-check")]


def test_two_releases_share_no_object_but_the_definitions_and_the_roles_of_people() -> None:
    one = Render.of(release="one", namespace="a")
    other = Render.of("crds.enabled=false", "rbac.userRoles.create=false", release="one", namespace="b")

    def names(render: Render) -> set[tuple[str, str, str]]:
        return {
            (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]) for each in render.objects
        }

    assert not names(one) & names(other)


def test_every_object_with_a_namespace_names_it() -> None:
    cluster_wide = {"CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding"}
    for each in Render.of().objects:
        assert each["metadata"].get("namespace") == (None if each["kind"] in cluster_wide else "pilothouse")


def test_every_value_is_explained_and_known_to_the_schema() -> None:
    lines = (CHART / "values.yaml").read_text().splitlines()
    sections = [number for number, line in enumerate(lines) if re.match(r"[a-zA-Z]+:", line)]
    for number in sections:
        around = lines[number - 1 : number + 2]
        assert any(line.strip().startswith("#") for line in around), f"{lines[number]} has no explanation"


def test_the_image_is_one_everywhere_and_a_digest_wins_over_a_tag() -> None:
    digest = "sha256:" + "0" * 64
    for values, wanted in (
        ((), f"pilothouse:{pilothouse.__version__}"),
        (("image.repository=r.example/ph", "image.tag=v2"), "r.example/ph:v2"),
        (("image.tag=v2", f"image.digest={digest}"), f"pilothouse@{digest}"),
    ):
        render = Render.of(*values)
        used = {container["image"] for pod in render.pods().values() for container in containers(pod)}
        assert used == {wanted}
        operator = containers(render.one("Deployment", "pilothouse-operator")["spec"]["template"]["spec"])
        env = {each["name"]: each.get("value") for container in operator for each in container["env"]}
        assert env["PILOTHOUSE_IMAGE"] == wanted


def test_the_entry_points_exist() -> None:
    for name, pod in Render.of().pods().items():
        for container in containers(pod):
            assert container["command"][:3] == ["python", "-I", "-m"], name
            module = Path(*container["command"][3].split("."))
            places = [ROOT / folder / module for folder in ("engine", "operator")]
            assert any(place.with_suffix(".py").exists() or (place / "__main__.py").exists() for place in places), (
                module
            )
