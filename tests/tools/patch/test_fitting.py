"""Patches that were made from two texts turn the one into the other."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from pilothouse.tools.patch.changes import Hunk
from pilothouse.tools.patch.fitting import Text, fit
from pilothouse.tools.patch.unified import read_unified

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "  d", "}", "-x", "+y", "@@ z", "*** End Patch"]), max_size=12)


@given(LINES, LINES, st.integers(0, 3))
def test_a_unified_diff_turns_the_one_text_into_the_other(old: list[str], new: list[str], context: int) -> None:
    diff = list(difflib.unified_diff(old, new, "a/f", "b/f", n=context, lineterm=""))
    if not diff or not old or not new:
        return
    [change] = read_unified("\n".join(diff) + "\n")
    text = Text("".join(f"{line}\n" for line in old))
    assert text.edited(fit(text, change.hunks)) == "".join(f"{line}\n" for line in new)


@given(st.text(alphabet="ab\r\n", max_size=20))
def test_a_text_without_edits_stays_as_it_is(text: str) -> None:
    assert Text(text).edited(()) == text


def test_hunks_are_in_the_files_order() -> None:
    text = Text("a\nb\na\n")
    hunks = (Hunk("first", ("b",), ("B",)), Hunk("second", ("a",), ("A",)))
    assert text.edited(fit(text, hunks)) == "a\nB\nA\n"
