"""The Pod of a command: what it is told, what it is not, and that nothing in it is expanded by a kubelet."""

import json
from typing import Any

import pytest

from pilothouse.records.failures import Failed, FailureCode
from pilothouse.records.values import Inline
from pilothouse.workflows.commands.pod import OUTPUT, SECRETS, SPEC, WORK, Spec
from pilothouse.workflows.work import CommandWork, ValueSource
from pilothouse_operator.commandpod import SPEC_ANNOTATION, SPEC_LIMIT
from pilothouse_operator.names import ROLE
from pilothouse_operator.pods import PYTHON
from tests.docs.pages import ROOT
from tests.operator.attempts import attempt, command_pod, env_of, mounts_of, volumes_of
from tests.workflows.local.machine import Machine, machine

__all__ = ["machine"]

IMAGE = "registry.example.com/app:1"
SECRET = ValueSource("Secret", "keys", "token")
WORDS = ValueSource("ConfigMap", "words", "w")


def main_of(pod: dict[str, Any]) -> dict[str, Any]:
    (main,) = pod["spec"]["containers"]
    found: dict[str, Any] = main
    return found


def spec_of(pod: dict[str, Any]) -> Spec:
    return Spec.from_json(json.loads(pod["metadata"]["annotations"][SPEC_ANNOTATION]))


def test_our_image_runs_our_entry_point_on_the_spec_that_it_sees_as_a_file() -> None:
    pod = command_pod(argv=["sh", "-c", "echo $(HOME)"], timeout=30.0, confined=True)
    main = main_of(pod)
    assert main["image"] == "pilothouse:test"
    assert main["command"] == [PYTHON, "-I", "-m", "pilothouse.workflows.commands.pod", "run", SPEC]
    assert "args" not in main
    assert main["workingDir"] == WORK
    assert main["securityContext"]["readOnlyRootFilesystem"] is True
    assert spec_of(pod) == Spec(["sh", "-c", "echo $(HOME)"], 30.0, True)
    (item,) = volumes_of(pod)["spec"]["downwardAPI"]["items"]
    assert item["fieldRef"] == {"fieldPath": "metadata.annotations['pilothouse.dev/spec']"}
    assert mounts_of(main)[SPEC.rpartition("/")[0]] == ("spec", True)
    assert item["path"] == SPEC.rpartition("/")[2]
    assert pod["metadata"]["labels"][ROLE] == "command"


def test_a_users_image_runs_as_it_is() -> None:
    pod = command_pod(argv=["./run", "$(HOME)", "$$(HOME)"], image=IMAGE)
    main = main_of(pod)
    assert main["image"] == IMAGE
    assert main["command"] == ["./run", "$$(HOME)", "$$$$(HOME)"]
    assert main["securityContext"]["readOnlyRootFilesystem"] is False
    assert "pilothouse" not in json.dumps([volume for volume in pod["spec"]["volumes"] if volume["name"] != "work"])
    assert SPEC_ANNOTATION not in pod["metadata"]["annotations"]
    assert pod["metadata"]["labels"][ROLE] == "image"


def expanded(text: str, variables: dict[str, str]) -> str:
    """As a kubelet expands a value, after k8s.io/kubernetes/third_party/forked/golang/expansion."""
    out, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            out, at = out + text[at], at + 1
        elif text[at + 1] == "$":
            out, at = out + "$", at + 2
        elif text[at + 1] == "(" and ")" in text[at:]:
            end = text.index(")", at)
            name = text[at + 2 : end]
            out, at = out + variables.get(name, text[at : end + 1]), end + 1
        else:
            out, at = out + text[at : at + 2], at + 2
    return out


TRICKY = ["$(HOME)", "$$(HOME)", "$$$(HOME)", "$HOME", "$$", "$", "a$", "$(", "$()", "($(HOME))", "$$HOME", "$x$(HOME)"]


@pytest.mark.parametrize("text", TRICKY)
@pytest.mark.parametrize("image", [None, IMAGE])
def test_a_value_arrives_as_it_is(text: str, image: str | None) -> None:
    pod = command_pod({"env": [{"name": "B", "value": text}]}, argv=["echo", text], env={"A": text}, image=image)
    main, known = main_of(pod), {"HOME": "/root", "": "empty"}
    assert expanded(env_of(main)["A"], known) == text
    assert expanded(env_of(main)["B"], known) == text
    argv = spec_of(pod).argv if image is None else [expanded(each, known) for each in main["command"]]
    assert argv[1] == text


@pytest.mark.parametrize("image", [None, IMAGE])
def test_the_output_file_is_ours_to_name_and_the_step_is_nearer_than_its_block(image: str | None) -> None:
    block = {"env": [{"name": name, "value": "block"} for name in ("A", "HOME", "LANG")]}
    env = env_of(main_of(command_pod(block, env={"PILOTHOUSE_OUTPUT": "mine", "A": "step"}, image=image)))
    assert env["PILOTHOUSE_OUTPUT"] == (OUTPUT if image is None else "/dev/termination-log")
    assert (env["A"], env["HOME"], env["LANG"]) == ("step", "block", "block")


def test_the_interpreter_is_found_whatever_path_the_user_sets() -> None:
    assert PYTHON.startswith("/")
    assert f"#!{PYTHON}|" in (ROOT / "Dockerfile").read_text()
    (layer,) = command_pod(files={"a": ""}, image=IMAGE)["spec"]["initContainers"]
    assert {main_of(command_pod())["command"][0], layer["command"][0]} == {PYTHON}


@pytest.mark.parametrize("own", [{}, {"HOME": "/srv", "LANG": "C.utf8", "PATH": "/bin:/usr/bin"}])
async def test_a_command_has_the_same_variables_here_and_in_a_pod(own: dict[str, str], machine: Machine) -> None:
    runner, begun = machine.runner(), attempt()
    await runner.start(begun, CommandWork(["env"], own))
    printed = (await machine.ended(runner, begun)).outputs["stdout"]
    assert isinstance(printed, Inline)
    here = dict(line.split("=", 1) for line in str(printed.value).splitlines())
    there = env_of(main_of(command_pod(env=own)))
    assert there.keys() | {"PATH"} == here.keys(), "PATH is the image's"
    assert own.items() <= there.items()
    assert own.items() <= here.items()
    own_home = str(machine.place(begun).work)
    assert (here["HOME"], there["HOME"]) == (own.get("HOME", own_home), own.get("HOME", WORK))
    assert here["LANG"] == there["LANG"]


@pytest.mark.parametrize("image", [None, IMAGE])
def test_a_secret_stays_a_reference(image: str | None) -> None:
    pod = command_pod(env={"TOKEN": SECRET}, files={"keys/token": SECRET, "words": WORDS, "own": "text"}, image=image)
    assert env_of(main_of(pod))["TOKEN"] == {"secretKeyRef": {"name": "keys", "key": "token"}}
    spec = spec_of(pod)
    assert spec.files == {"words": "hush $(HOME)", "own": "text"}
    assert spec.secret_files == {"keys/token": f"{SECRETS}/0"}
    (source,) = volumes_of(pod)["secrets"]["projected"]["sources"]
    assert source == {"secret": {"name": "keys", "items": [{"key": "token", "path": "0"}]}}
    (reader,) = pod["spec"]["initContainers"] if image else pod["spec"]["containers"]
    assert mounts_of(reader)[SECRETS] == ("secrets", True)
    assert image is None or SECRETS not in mounts_of(main_of(pod)), "a user's image sees only the files that were laid"


def test_two_secrets_of_one_key_are_two_files() -> None:
    other = ValueSource("Secret", "others", "token")
    pod = command_pod(files={"a": SECRET, "b": other, "c": SECRET})
    assert spec_of(pod).secret_files == {"a": f"{SECRETS}/0", "b": f"{SECRETS}/1", "c": f"{SECRETS}/2"}
    sources = volumes_of(pod)["secrets"]["projected"]["sources"]
    assert [(each["secret"]["name"], each["secret"]["items"][0]["path"]) for each in sources] == [
        ("keys", "0"),
        ("others", "1"),
        ("keys", "2"),
    ]


def test_a_text_of_a_config_map_is_the_frozen_one() -> None:
    pod = command_pod(env={"W": WORDS})
    assert env_of(main_of(pod))["W"] == "hush $$(HOME)"
    assert "configMapKeyRef" not in json.dumps(pod)


@pytest.mark.parametrize("image", [None, IMAGE])
def test_what_is_too_large_to_travel_with_its_pod_is_refused(image: str | None) -> None:
    fits = command_pod(files={"a": "x" * (SPEC_LIMIT - 200)}, image=image)
    assert len(fits["metadata"]["annotations"][SPEC_ANNOTATION]) <= SPEC_LIMIT
    for files in ({"a": "x" * SPEC_LIMIT}, {"a": "€" * (SPEC_LIMIT // 6 + 1)}):
        with pytest.raises(Failed) as failed:
            command_pod(files=files, image=image)
        assert failed.value.failure.code is FailureCode.RES
        assert "pod.volumes" in failed.value.failure.message


@pytest.mark.parametrize("image", [None, IMAGE])
def test_the_kubelet_ends_what_nobody_else_does_and_not_too_early(image: str | None) -> None:
    pod = command_pod(pending=600.0, timeout=30.0, image=image)
    assert pod["spec"]["activeDeadlineSeconds"] > 600 + 30
    assert "activeDeadlineSeconds" not in command_pod(image=image)["spec"]


def test_files_are_laid_for_a_users_image_by_ours_before_it_starts() -> None:
    pod = command_pod(files={"in/a": "text"}, image=IMAGE)
    (layer,) = pod["spec"]["initContainers"]
    assert layer["image"] == "pilothouse:test"
    assert layer["command"][-2:] == ["lay", SPEC]
    assert mounts_of(layer)[WORK] == mounts_of(main_of(pod))[WORK] == ("work", False)
    assert "initContainers" not in command_pod(image=IMAGE)["spec"]
