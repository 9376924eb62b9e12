"""The command line."""

from pathlib import Path

import pytest

from e2e.cluster import __main__ as command_line
from e2e.cluster import binaries, clusters, image
from e2e.cluster.components import Options
from e2e.cluster.errors import ClusterError
from e2e.cluster.layout import NAME_VARIABLE, Layout
from e2e.cluster.state import State


class Recorded:
    """A cluster that notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def up(self, options: Options) -> None:
        self.asked.append(f"up {options.mutating_admission_policy}")

    def down(self) -> None:
        self.asked.append("down")


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Recorded:
    monkeypatch.setenv("PILOTHOUSE_CACHE", str(tmp_path))
    monkeypatch.delenv(NAME_VARIABLE, raising=False)
    recorded = Recorded()
    monkeypatch.setattr(clusters, "of", lambda layout: recorded)
    monkeypatch.setattr(image, "ensure", lambda *_: recorded.asked.append("image"))
    return recorded


def running() -> None:
    State("native", "https://127.0.0.1:1", "bin-1", mutating_admission_policy=False, boot="b").save(Layout.of())


def test_up_passes_the_switch_on(cluster: Recorded) -> None:
    assert command_line.main(["up"]) == 0
    assert command_line.main(["up", "--mutating-admission-policy"]) == 0
    assert cluster.asked == ["up False", "up True"]


def test_up_tells_how_kubectl_and_helm_are_found(cluster: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    command_line.main(["up"])
    layout = Layout.of()
    exports = [f"export KUBECONFIG={layout.kubeconfig}", f'export PATH={binaries.folder(layout)}:"$PATH"']
    assert capsys.readouterr().out.splitlines() == exports, "what a shell can take as it is"


def test_a_command_is_run_with_a_cluster_that_is_removed_whatever_comes_of_it(cluster: Recorded) -> None:
    assert command_line.main(["with", "--", "sh", "-c", 'test -n "$KUBECONFIG" && exit 7']) == 7
    assert cluster.asked == ["up False", "image", "down"]


def test_a_cluster_that_ran_before_or_is_to_be_kept_is_left_running(cluster: Recorded) -> None:
    assert command_line.main(["with", "--keep", "--", "true"]) == 0
    running()
    assert command_line.main(["with", "--", "true"]) == 0
    assert cluster.asked == ["up False", "image"] * 2


def test_what_was_made_is_removed_also_when_the_image_cannot_be(
    cluster: Recorded, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise ClusterError("no base image")

    monkeypatch.setattr(image, "ensure", refuse)
    assert command_line.main(["with", "--", "true"]) == 1
    assert cluster.asked == ["up False", "down"]
    assert "cluster: no base image" in capsys.readouterr().err


def test_a_component_is_disturbed_only_on_our_cluster(cluster: Recorded, capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["kill", "apiserver"]) == 1
    assert "there is no cluster" in capsys.readouterr().err
    assert cluster.asked == []
