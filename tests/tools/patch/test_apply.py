"""`apply_patch` in a real sandbox: all of a patch or nothing, and errors that say where."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from pilothouse.records.failures import Failed
from pilothouse.tools.patch.apply import ApplyPatch
from pilothouse.tools.sandbox.client import FileContent, Sandbox
from pilothouse.tools.sandbox.errors import OperationFailed, SandboxLost
from pilothouse.tools.sandbox.local import local_sandbox
from pilothouse.tools.sandboxed import Sandboxes
from pilothouse.tools.tool import ToolResult
from tests.tools import calls
from tests.tools.calls import text

APP = "import os\n\n\nclass App:\n    def run(self):\n        return 1\n\n    def stop(self):\n        return 1\n"

UPDATE = """\
*** Begin Patch
*** Update File: app.py
@@ class App:
@@     def stop(self):
-        return 1
+        return 2
*** End Patch
"""

UNIFIED = """\
diff --git a/app.py b/app.py
index 123..456 100644
--- a/app.py
+++ b/app.py
@@ -6,4 +6,4 @@ class App:
         return 1

     def stop(self):
-        return 1
+        return 2
"""


@pytest.fixture
async def sandbox(tmp_path: Path) -> AsyncIterator[Sandbox]:
    (tmp_path / "app.py").write_text(APP)
    async with local_sandbox(tmp_path) as sandbox:
        yield sandbox


async def apply(sandbox: Sandboxes, patch: str, **more: bool) -> ToolResult:
    return await calls.use(ApplyPatch(sandbox), patch=patch, **more)


@pytest.mark.parametrize("patch", [UPDATE, UNIFIED, UPDATE.replace("\n", "\r\n"), f"\n{UPDATE}\n"])
async def test_both_formats_change_the_right_place(sandbox: Sandbox, tmp_path: Path, patch: str) -> None:
    result = await apply(sandbox, patch)
    assert (result.is_error, result.details) == (False, {"dryRun": False, "files": 1})
    assert (tmp_path / "app.py").read_text() == APP[:-9] + "return 2\n"
    assert text(result).startswith("Done:\nM app.py\n@@ -")
    assert "-        return 1\n+        return 2" in text(result)


async def test_a_dry_run_shows_the_change_and_makes_none(sandbox: Sandbox, tmp_path: Path) -> None:
    result = await apply(sandbox, UPDATE, dry_run=True)
    assert text(result).startswith("The patch fits; nothing was changed yet:\nM app.py\n@@ -9,1 +9,1 @@\n-")
    assert (tmp_path / "app.py").read_text() == APP


async def test_files_are_added_moved_and_deleted(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("x")
    (tmp_path / "app.py").chmod(0o750)
    patch = """*** Begin Patch
*** Add File: new/a.txt
+one
+
+two
*** Delete File: old.txt
*** Update File: app.py
*** Move to: src/app.py
@@
-import os
+import sys
*** End Patch"""
    result = await apply(sandbox, patch)
    assert text(result).split("\n")[1] == "A new/a.txt"
    assert (tmp_path / "new/a.txt").read_text() == "one\n\ntwo\n"
    assert (tmp_path / "src/app.py").read_text() == APP.replace("os", "sys")
    assert (tmp_path / "src/app.py").stat().st_mode & 0o777 == 0o750
    assert sorted(os.listdir(tmp_path)) == ["new", "src"]


async def test_a_file_may_be_changed_twice_in_one_patch(sandbox: Sandbox, tmp_path: Path) -> None:
    patch = """*** Begin Patch
*** Update File: app.py
-import os
+import sys
*** Update File: app.py
-import sys
+import re
*** End Patch"""
    assert not (await apply(sandbox, patch)).is_error
    assert (tmp_path / "app.py").read_text() == APP.replace("os", "re")


async def test_what_git_writes_is_applied(sandbox: Sandbox, tmp_path: Path) -> None:
    """With additions, deletions, and files without an end of their last line."""
    trees = {
        "a": {"app.py": APP, "gone": "a\nb\n", "tail": "1\n2", "same": "s\n"},
        "b": {
            "app.py": "first\n" + APP.replace("stop", "halt") + "last",
            "new": "n",
            "tail": "1\n2\n3\n",
            "same": "s\n",
        },
    }
    for tree, contents in trees.items():
        (tmp_path.parent / tree).mkdir()
        for name, content in contents.items():
            (tmp_path.parent / tree / name).write_text(content)
    for name, content in trees["a"].items():
        (tmp_path / name).write_text(content)
    command = ["git", "diff", "--no-index", "a", "b"]
    process = await asyncio.create_subprocess_exec(*command, cwd=tmp_path.parent, stdout=asyncio.subprocess.PIPE)
    patch = (await process.communicate())[0].decode().replace("a/a/", "a/").replace("b/b/", "b/")
    assert text(await apply(sandbox, patch)).startswith("Done:")
    assert {name: (tmp_path / name).read_text() for name in os.listdir(tmp_path)} == trees["b"]


async def test_ends_of_lines_and_odd_bytes_stay(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "dos").write_bytes(b"a\xff\r\nb\r\nc")
    patch = "*** Begin Patch\n*** Update File: dos\n-b\n+B\n+B2\n c\n*** End Patch"
    assert not (await apply(sandbox, patch)).is_error
    assert (tmp_path / "dos").read_bytes() == b"a\xff\r\nB\r\nB2\r\nc\r\n"


MISFITS = [
    ("*** Update File: app.py\n-import sys\n+x", "line 3 of the patch does not fit: the file has no line `import sys`"),
    (
        "*** Update File: app.py\n class App:\n-    def go(self):\n+    x",
        "`app.py`: the hunk at line 3 of the patch does not fit: at line 5 it expects `    def go(self):`, the file "
        "has `    def run(self):`",
    ),
    ("*** Update File: app.py\n-        return 1\n+x", "fits at more than one place (lines 6, 9): give it more lines"),
    ("*** Update File: app.py\n@@ class Other:\n-        return 1\n+x", "no line `class Other:` below line 0"),
    ("*** Update File: app.py\n        return 1\n*** End of File", "the hunk changes nothing"),
    ("*** Update File: app.py\nreturn 1\n+x", "line 3 of the patch must begin with ` ` (context)"),
    ("*** Update File: app.py", "nothing is changed in `app.py`"),
    ("*** Update File: none.py\n-a\n+b", "`none.py` does not exist in the workspace"),
    ("*** Delete File: none.py", "`none.py` does not exist in the workspace"),
    ("*** Add File: app.py\n+a", "`app.py` is there already; update it instead"),
    ("*** Add File: a\nb", "line 3 of the patch: each line of an added file must begin with `+`"),
    ("*** Update File: app.py\n*** Move to: app.py\n-import os\n+b", "`app.py` is there already"),
    ("*** Rename File: app.py", "line 2 of the patch must be one of *** Add File: "),
    ("", "the patch changes no file"),
    ("*** Update File: ../x\n-a\n+b", "leads out of the workspace"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "why"), MISFITS)
async def test_a_patch_of_which_a_part_does_not_fit_changes_nothing(
    sandbox: Sandbox, tmp_path: Path, body: str, why: str
) -> None:
    (tmp_path / "first").write_text("1\n")
    good = "*** Update File: first\n-1\n+2\n" if body.startswith(("*** U", "*** D", "*** A")) else ""
    result = await apply(sandbox, f"*** Begin Patch\n{body}\n{good}*** End Patch".replace("\n\n", "\n"))
    assert result.is_error
    assert why in text(result)
    assert (tmp_path / "app.py").read_text() == APP
    assert (tmp_path / "first").read_text() == "1\n"


@pytest.mark.parametrize(
    ("patch", "why"),
    [
        ("hello", "the patch names no file"),
        ("@@ -1 +1 @@\n-a\n+b", "`--- a/PATH` and `+++ b/PATH` must come first"),
        ("--- a/app.py\n+++ b/app.py\n", "no `@@ -1,2 +1,2 @@` hunk"),
        ("--- a/app.py\n+++ b/app.py\n@@ -1 +1 @@\nimport os\n", "line 4 of the patch must begin with"),
        ("*** Begin Patch\n*** Update File: app.py\n-import os\n+x", "last line of the patch must be `*** End Patch`"),
    ],
)
async def test_a_patch_that_cannot_be_read_says_why(sandbox: Sandbox, patch: str, why: str) -> None:
    result = await apply(sandbox, patch)
    assert result.details == {"error": "PatchRefused"}
    assert why in text(result)


async def test_line_numbers_only_choose_between_places(sandbox: Sandbox, tmp_path: Path) -> None:
    patch = "--- a/app.py\n+++ b/app.py\n@@ -{} +{} @@\n-        return 1\n+        return 2\n"
    assert not (await apply(sandbox, patch.format(12, 12))).is_error
    assert (tmp_path / "app.py").read_text() == APP[:-9] + "return 2\n"


async def test_lines_are_inserted_where_the_patch_says(sandbox: Sandbox, tmp_path: Path) -> None:
    patch = "--- app.py\n+++ app.py\n@@ -1,0 +2,1 @@\n+import re\n@@ -99 +99 @@\n def stop(self):\n"
    assert "does not fit" in text(await apply(sandbox, patch)) or "changes nothing" in text(await apply(sandbox, patch))
    assert not (await apply(sandbox, patch.split("@@ -99")[0])).is_error
    assert (tmp_path / "app.py").read_text() == APP.replace("import os\n", "import os\nimport re\n")
    assert not (await apply(sandbox, "*** Begin Patch\n*** Update File: app.py\n+last\n*** End Patch")).is_error
    assert (tmp_path / "app.py").read_text().endswith("return 1\nlast\n")


async def test_blanks_at_the_ends_of_context_do_not_matter_and_stay(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "b").write_text("one  \ntwo\nthree\t\n")
    await apply(sandbox, "*** Begin Patch\n*** Update File: b\n one\n-two\n+2\n three\n*** End Patch")
    assert (tmp_path / "b").read_text() == "one  \n2\nthree\t\n"


class Failing:
    """A sandbox whose disk is full for the file `full`."""

    def __init__(self, sandbox: Sandbox, error: Exception) -> None:
        self._sandbox = sandbox
        self._error = error

    async def current(self) -> Sandbox:
        return cast(Sandbox, self)

    async def get(self, path: str, *, max_bytes: int) -> FileContent:
        return await self._sandbox.get(path, max_bytes=max_bytes)

    async def put(self, path: str, data: bytes, *, mode: int) -> None:
        if path == "full":
            raise self._error
        await self._sandbox.put(path, data, mode=mode)

    async def remove(self, path: str) -> None:
        await self._sandbox.remove(path)


ALL = UPDATE.replace(
    "*** End Patch", "*** Add File: new\n+a\n*** Delete File: old\n*** Add File: full\n+a\n*** End Patch"
)


async def test_what_was_written_before_a_write_failed_is_put_back(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    (tmp_path / "old").chmod(0o640)
    result = await apply(Failing(sandbox, OperationFailed("no space left on device")), ALL)
    assert (result.is_error, text(result)) == (True, "no space left on device")
    assert (tmp_path / "app.py").read_text() == APP
    assert (tmp_path / "old").read_text() == "old"
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["app.py", "old"]


async def test_a_sandbox_that_is_lost_meanwhile_leaves_an_unknown_outcome(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "old").write_text("old")
    with pytest.raises(Failed, match="nobody knows what it did"):
        await apply(Failing(sandbox, SandboxLost("the sandbox has gone away")), ALL)


async def test_a_binary_file_is_not_patched(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "bin").write_bytes(b"a\0b")
    result = await apply(sandbox, "*** Begin Patch\n*** Update File: bin\n-a\n+b\n*** End Patch")
    assert "`bin` is no text file" in text(result)
