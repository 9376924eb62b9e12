"""scripts/setup: what it installs, once, and what it says when it can't.

The interpreter is a shell script that makes environments of itself, so nothing is downloaded. It appends what it is
asked to do to the file `calls`; a file `fail-WORD` beside it makes every call fail that has WORD among its arguments.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

INTERPRETER = """#!/bin/bash
home=@HOME@
for word in "$@"; do
  [[ ! -e $home/fail-${word//[^a-z]/} ]] || exit 1
done
case "$*" in
  *ensurepip*) [[ ! -e $home/no-venv ]] ;;
  *-venv*) echo python3.11-venv ;;
  "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && echo venv >>"$home/calls" ;;
  "-m pip "*) sleep 0.1; echo "pip ${@: -1}" >>"$home/calls" ;;
esac
"""


class Checkout:
    """A checkout with scripts/setup and its locks, a cache of its own and the interpreter described above."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.home = folder / "home"
        self.home.mkdir()
        for name in ("scripts/setup", "pyproject.toml", "constraints.txt", "bench/requirements.txt"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, self.folder / name)
        self.interpreter = self.home / "python"
        self.interpreter.write_text(INTERPRETER.replace("@HOME@", str(self.home)))
        self.interpreter.chmod(0o755)

    def command(self, *arguments: str) -> list[str]:
        return [str(self.folder / "scripts" / "setup"), *arguments]

    def environment(self, path: str = os.defpath) -> dict[str, str]:
        return {"HOME": str(self.home), "PATH": path, "PYTHON": str(self.interpreter)}

    def run(self, *arguments: str, path: str = os.defpath) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), env=self.environment(path), capture_output=True, text=True, check=False
        )

    def path_of(self, group: str) -> Path:
        done = self.run(group)
        assert done.returncode == 0, done.stderr
        return Path(done.stdout.strip())

    def calls(self) -> list[str]:
        log = self.home / "calls"
        return log.read_text().splitlines() if log.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_installs_a_group_once_below_the_cache(checkout: Checkout) -> None:
    environment = checkout.path_of("local")
    assert environment.parent == checkout.home / ".cache" / "pilothouse"
    assert checkout.calls() == ["venv", "pip hatchling", "pip .[local]"]
    assert checkout.path_of("local") == environment
    assert len(checkout.calls()) == 3


def test_runs_the_command_in_the_environment_and_passes_its_exit_code_on(checkout: Checkout) -> None:
    done = checkout.run("local", "bash", "-c", 'command -v python; echo "$VIRTUAL_ENV"; exit 7')
    environment = checkout.path_of("local")
    assert done.stdout.splitlines() == [f"{environment}/bin/python", str(environment)]
    assert done.returncode == 7


def test_two_at_once_install_once(checkout: Checkout) -> None:
    runs = [subprocess.Popen(checkout.command("local"), env=checkout.environment()) for _ in range(4)]
    assert [run.wait() for run in runs] == [0, 0, 0, 0]
    assert checkout.calls().count("venv") == 1


def test_makes_a_half_finished_environment_anew(checkout: Checkout) -> None:
    (checkout.home / "fail-hatchling").touch()
    failed = checkout.run("local", "true")
    assert failed.returncode != 0
    assert "pip could not install" in failed.stderr

    (checkout.home / "fail-hatchling").unlink()
    (leftover,) = (checkout.home / ".cache" / "pilothouse").glob("venv-*/bin")
    (leftover / "half").touch()
    assert checkout.path_of("local") == leftover.parent
    assert not (leftover / "half").exists()


def test_makes_an_environment_anew_whose_interpreter_is_gone(checkout: Checkout) -> None:
    environment = checkout.path_of("local")
    (environment / "bin" / "python").unlink()
    assert checkout.path_of("local") == environment
    assert (environment / "bin" / "python").exists()


def test_another_lock_makes_another_environment_and_a_tool_setting_does_not(checkout: Checkout) -> None:
    first = checkout.path_of("local")
    with (checkout.folder / "pyproject.toml").open("a") as pyproject:
        pyproject.write("\n[tool.other]\nsetting = 1\n")
    assert checkout.path_of("local") == first
    with (checkout.folder / "constraints.txt").open("a") as constraints:
        constraints.write("another==1\n")
    assert checkout.path_of("local") != first


def test_groups_and_checkouts_do_not_share_an_environment(checkout: Checkout, tmp_path: Path) -> None:
    first, dev = checkout.path_of("local"), checkout.path_of("dev")
    shutil.copytree(checkout.folder, tmp_path / "second")
    checkout.folder = tmp_path / "second"
    assert len({first, dev, checkout.path_of("local")}) == 3


def test_removes_the_environments_of_checkouts_that_are_gone(checkout: Checkout, tmp_path: Path) -> None:
    first = checkout.path_of("local")
    checkout.folder = checkout.folder.rename(tmp_path / "moved")
    second = checkout.path_of("local")
    assert second.exists()
    assert not first.exists()


def test_clean_removes_this_checkouts_environments_only(checkout: Checkout, tmp_path: Path) -> None:
    first = checkout.path_of("local")
    shutil.copytree(checkout.folder, tmp_path / "second")
    checkout.folder = tmp_path / "second"
    second = checkout.path_of("local")
    assert checkout.run("clean").returncode == 0
    assert first.exists()
    assert not second.exists()


def test_says_which_python_it_looked_for(checkout: Checkout) -> None:
    checkout.interpreter.unlink()
    done = checkout.run("local", "true")
    assert done.returncode == 1
    assert "no Python 3.11 or later found" in done.stderr
    assert str(checkout.interpreter) in done.stderr


def test_says_without_root_what_is_missing_and_what_to_type(checkout: Checkout, tmp_path: Path) -> None:
    (checkout.home / "no-venv").touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, body in (("id", "echo 1000"), ("apt-get", "exit 99")):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    done = checkout.run("local", "true", path=f"{tools}:{os.defpath}")
    assert done.returncode == 1
    assert "lacks the Debian packages: python3.11-venv" in done.stderr
    assert (
        "type: sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends python3.11-venv'" in done.stderr
    )


def test_as_root_installs_what_is_missing(checkout: Checkout, tmp_path: Path) -> None:
    (checkout.home / "no-venv").touch()
    tools = tmp_path / "tools"
    tools.mkdir()
    heals = f'echo "apt-get $*" >>{checkout.home}/calls; [ "$1" = update ] || rm {checkout.home}/no-venv'
    for name, body in (("id", "echo 0"), ("apt-get", heals)):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    assert checkout.run("local", "true", path=f"{tools}:{os.defpath}").returncode == 0
    assert checkout.calls()[:3] == [
        "apt-get update",
        "apt-get install -y --no-install-recommends python3.11-venv",
        "venv",
    ]


def test_refuses_an_unknown_group_naming_the_known_ones(checkout: Checkout) -> None:
    done = checkout.run("prod")
    assert done.returncode == 1
    assert "unknown group 'prod'; say local, dev, test or bench" in done.stderr
