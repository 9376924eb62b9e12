"""Files of objects are read as `kubectl apply -f` would read them."""

import io
import sys
from pathlib import Path

import pytest

from pilothouse.api.workflow import Workflow
from pilothouse.cli.configdata import ConfigMap, Secret
from pilothouse.cli.manifests import read
from pilothouse.cli.validate import validate

GOOD = Path(__file__).parent / "good"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: NAME}\n"


@pytest.mark.parametrize("path", sorted(GOOD.iterdir()), ids=lambda path: path.name)
async def test_a_good_file_has_nothing_to_tell(path: Path) -> None:
    assert await validate([path]) == []


async def test_every_example_is_valid() -> None:
    assert await validate([Path(__file__).parents[2] / "examples"]) == []


def test_quoted_and_plain_scalars_keep_their_types() -> None:
    [workflow] = read([GOOD / "texts.yaml"]).workflows
    defaults = [param.default for param in workflow.spec.params]
    assert defaults == ["on", "0777", "1:30", "2027-01-31", "1_000", "no", "no", 1000.0, 31, True]
    assert workflow.metadata.annotations == {"on": "yes"}


def test_json_keeps_what_its_escapes_say() -> None:
    [workflow] = read([GOOD / "plain.json"]).workflows
    assert workflow.metadata.labels == {"smile": "\U0001f600"}
    assert workflow.spec.manifest()["steps"][0]["transform"] == {"value": "\0 \U0001f600 on yes"}


def test_a_directory_stands_for_its_manifests_in_order(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "notes.txt", "d.YAML"):
        (tmp_path / name).write_text(CONFIG.replace("NAME", name[0]))
    (tmp_path / "c.json").write_text('{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}')
    (tmp_path / "sub.yaml").mkdir()
    found = read([tmp_path])
    assert found.findings == []
    assert [Path(manifest.source.file).name for manifest in found.all] == ["a.yaml", "b.yml", "c.json"]


def test_standard_input_is_a_file_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO((CONFIG.replace("NAME", "a") + "dat: {}\n").encode()))
    )
    assert [str(finding) for finding in read(["-"]).findings] == ["stdin:4: dat: unknown field; did you mean `data`?"]


def test_a_byte_order_mark_and_empty_documents_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"\xef\xbb\xbf---\n# nothing\n---\n" + CONFIG.replace("NAME", "a").encode() + b"---\n")
    assert [manifest.identity for manifest in read([path]).all] == [("ConfigMap", "default", "a")]


def test_objects_meet_only_in_their_own_namespace(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    other = CONFIG.replace("NAME", "a, namespace: team-b")
    path.write_text(CONFIG.replace("NAME", "a") + "---\n" + other)
    found = read([path], namespace="team-a")
    assert found.findings == []
    assert set(found.named(ConfigMap, "team-a")) == {"a"}
    assert set(found.named(ConfigMap, "team-b")) == {"a"}
    assert found.named(ConfigMap, "default") == {}
    assert found.named(Workflow, "team-a") == {}


def test_config_maps_and_secrets_give_their_values(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(
        CONFIG.replace("NAME", "a") + "data: {text: grüß}\nbinaryData: {more: YWJj, raw: /w==}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: YWJj, b: YWJj}\nstringData: {b: wins}\n",
        encoding="utf-8",
    )
    found = read([path])
    assert found.named(ConfigMap, "default")["a"].texts == {"text": "grüß", "more": "abc"}
    secret = found.named(Secret, "default")["s"]
    assert secret.values == {"a": b"abc", "b": b"wins"}
    assert "abc" not in repr(secret)
    assert "wins" not in repr(found)


def test_more_data_than_kubernetes_keeps_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(CONFIG.replace("NAME", "a") + f"data: {{a: {'x' * 600_000}, b: {'y' * 600_000}}}\n")
    assert [str(f) for f in read([path]).findings] == [f"{path}:1: holds more than 1,024 KiB of data"]
