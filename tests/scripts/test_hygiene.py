"""The hygiene rules: no registry's host, no path of one machine, no address in a lock file."""

import subprocess
from pathlib import Path

import pytest

from scripts import hygiene

REGISTRY = hygiene.REGISTRY_HOSTS[0]
WORKPLACE = hygiene.WORKPLACES[0]


def found(text: str, path: str = "docs/page.md") -> list[str]:
    return list(hygiene.problems(path, text))


@pytest.mark.parametrize("host", hygiene.REGISTRY_HOSTS)
@pytest.mark.parametrize("form", ["see https://{}/simple", "HOST={}", "https://files.{}/x", "{}."])
def test_finds_a_registry_in_any_text(host: str, form: str) -> None:
    assert len(found(form.format(host.upper()))) == 1
    assert len(found(form.format(host))) == 1


def test_names_the_line_and_what_it_holds() -> None:
    assert found(f"fine\nfrom {REGISTRY}\n") == [
        f"docs/page.md:2: names the package registry '{REGISTRY}'; leave the index to the user's own client"
    ]


@pytest.mark.parametrize("text", [f"my-{REGISTRY}", f"{REGISTRY}x", "import npm", "maven"])
def test_lets_other_names_pass_that_contain_one(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("workplace", hygiene.WORKPLACES)
@pytest.mark.parametrize("form", ["{}/main", 'open("{}/x")', "PATH=a:{}/bin", "file://{}/x"])
def test_finds_an_absolute_path_of_a_workplace(workplace: str, form: str) -> None:
    assert len(found(form.format(workplace))) == 1


@pytest.mark.parametrize("form", ["a{}/b", "${{HOME}}{}/b", "src{}/b", "{}space/b", "{}"])
def test_lets_paths_below_something_else_pass(form: str) -> None:
    assert found(form.format(WORKPLACE)) == []


@pytest.mark.parametrize("lock", ["constraints.txt", "bench/requirements.txt", "tests/peers/package-lock.json"])
@pytest.mark.parametrize("line", ["--extra-index-url x", "-i x", "--find-links dir", '"resolved": "https://a.test/b"'])
def test_finds_any_address_in_a_lock_file(lock: str, line: str) -> None:
    assert len(found(line, lock)) == 1
    assert found(line, "README.md") == []


def test_lets_pins_and_hashes_in_a_lock_file_pass() -> None:
    assert found("a-i==1.0\nfind-links==2\nb==2 --hash=sha256:00\n", "constraints.txt") == []


def test_checks_what_would_be_committed_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("ignored\n")
    (tmp_path / "ignored").write_text(REGISTRY)
    (tmp_path / "binary").write_bytes(b"\xff\xfe" + REGISTRY.encode())
    (tmp_path / "link").symlink_to("missing")
    assert hygiene.main(tmp_path) == 0

    (tmp_path / "new file").write_text(REGISTRY)
    assert hygiene.main(tmp_path) == 1
    assert "new file:1: names the package registry" in capsys.readouterr().out
