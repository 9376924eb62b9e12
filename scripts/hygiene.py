"""What no file of the repository may hold, checked over its text files by `make check`.

- The host of a package registry, and in lock files any address at all: an install asks the index that the user's own
  client is set up for. Host names are compared case-insensitively.
- An absolute path of the machine that somebody happened to work on: it exists nowhere else.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Written apart, as this file is checked too.
REGISTRY_HOSTS = tuple(
    ".".join(labels)
    for labels in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("maven", "apache", "org"),
        ("maven", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("snapshot", "debian", "org"),
    )
)
WORKPLACES = ("/" + "work", "/" + "root")

_LOCK_FILE = re.compile(r"(^|/)(constraints[\w-]*\.txt|requirements[\w-]*\.txt|package-lock\.json|uv\.lock)$")
_REGISTRY = re.compile(r"(?<![\w-])(" + "|".join(map(re.escape, REGISTRY_HOSTS)) + r")(?![\w-])", re.IGNORECASE)
_WORKPLACE = re.compile(r"(?<![\w.*}-])(" + "|".join(map(re.escape, WORKPLACES)) + r")/")
_INDEX = re.compile(r"://|^\s*(-i|-f|--(extra-)?index-url|--find-links)\b")

_RULES = (
    (_REGISTRY, "names the package registry {!r}; leave the index to the user's own client"),
    (_WORKPLACE, "names the path {!r} of one machine; take it from the environment or make it relative"),
)


def problems(path: str, text: str) -> Iterator[str]:
    """Yields `path:line: what is wrong` for each line of a file that breaks a rule."""
    rules = (*_RULES, (_INDEX, "is a lock file with the address or option {!r}")) if is_lock(path) else _RULES
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, message in rules:
            if found := pattern.search(line):
                yield f"{path}:{number}: {message.format(found.group())}"


def is_lock(path: str) -> bool:
    """Tells whether a file pins what an installer installs."""
    return _LOCK_FILE.search(path) is not None


def _files(root: Path) -> Iterator[str]:
    """Yields the files that are, or would be, committed: known to git or new, and not ignored."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    yield from sorted({name for name in listed.stdout.split("\0") if name})


def _text(path: Path) -> str | None:
    """Returns the text of a file, or None of what is no text: binary, a link, gone from the work tree."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return None


def main(root: Path) -> int:
    """Prints every problem of the checkout at `root`; returns the exit code, 1 if there is any."""
    texts = {name: text for name in _files(root) if (text := _text(root / name)) is not None}
    found = [problem for name, text in texts.items() for problem in problems(name, text)]
    print(*found, f"hygiene    {len(texts):5} files, {len(found)} problems", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).resolve().parent.parent))
