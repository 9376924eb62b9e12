"""Sessions as files: what is in one is kept to the last field, and what is no session is refused by its line."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.agents.session import Header, SessionError, SessionFile, read_jsonl, write_jsonl
from tests.agents.session.files import HEADER, entry, files, jsonl, message


def refused(data: bytes) -> SessionError:
    with pytest.raises(SessionError) as caught:
        read_jsonl(data)
    return caught.value


@given(files)
def test_a_session_survives_the_way_to_a_file_and_back(lines: list[dict[str, Any]]) -> None:
    file = read_jsonl(jsonl(*lines))
    written = write_jsonl(file)
    assert [json.loads(line) for line in written.splitlines()] == lines
    assert read_jsonl(written) == file
    assert file.warnings == ()


def test_a_file_reads_like_the_harness_documents_it() -> None:
    file = SessionFile(Header(id="s", timestamp="2026-01-02T03:04:05.678Z", cwd="/work", parent_session="p"), ())
    assert json.loads(write_jsonl(file)) == {
        "type": "session",
        "version": 3,
        "id": "s",
        "timestamp": "2026-01-02T03:04:05.678Z",
        "cwd": "/work",
        "parentSession": "p",
    }


@pytest.mark.parametrize("mended", [b"\n", b"", b"\r\n", b"\n\n"])
def test_a_whole_last_line_is_read_however_it_ends(mended: bytes) -> None:
    file = read_jsonl(jsonl(HEADER, message("a", None)).rstrip(b"\n") + mended)
    assert ([one.id for one in file.entries], file.warnings) == (["a"], ())


@given(st.integers(1, 60))
def test_a_torn_last_line_is_left_out_with_a_warning(at: int) -> None:
    whole = jsonl(HEADER, message("a", None))
    file = read_jsonl(whole + jsonl(message("b", "a", "\u00e9\U0001f600" * 9), ascii=False)[:at])
    assert [one.id for one in file.entries] == ["a"]
    [warning] = file.warnings
    assert warning == f"line 3 is cut off and was left out: {at:,} bytes without a line end"


def test_a_last_line_that_is_whole_and_no_entry_is_refused() -> None:
    for end in ("", "\n"):
        error = refused(jsonl(HEADER) + b'{"type": "message"}' + end.encode())
        assert (error.code, str(error)) == ("invalid_entry", "line 2: id: must be a text that is not empty")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"", "it is not JSON"),
        (b"[1]", "it is not a JSON object"),
        (b"{", "it is not JSON: Expecting property name"),
        (b'{"type": "message"}', "type: "),
        (json.dumps({**HEADER, "version": 2}).encode(), "version: "),
        (json.dumps({**HEADER, "id": ""}).encode(), "id: "),
        (json.dumps({name: value for name, value in HEADER.items() if name != "cwd"}).encode(), "cwd: Field required"),
    ],
)
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_what_has_no_header_is_no_session(line: bytes, complaint: str, end: bytes) -> None:
    error = refused(line + end)
    assert error.code == "invalid_session"
    assert str(error).startswith(f"line 1 is no header of a session: {complaint}")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{]", "it is not JSON: Expecting property name enclosed in double quotes at character 2"),
        (b'"text"', "it is not a JSON object"),
        (b'{"a": "\xff"}', "it is not UTF-8"),
        (b'{"a": NaN}', "it holds NaN, which JSON does not have"),
        (b'{"a": ' * 300 + b"1" + b"}" * 300, "nested more than 200 levels deep"),
        (b'{"a": ' * 99_000 + b"1" + b"}" * 99_000, "nested too deeply"),
        (b'{"a": 99999999999999999999}', "`a` is an integer beyond 64 bits"),
        (entry("b", "a", "custom", customType=3), "customType: Input should be a valid string"),
        (entry("b", "a", "message", message={"role": "user"}), "message: Value error, content: Field required"),
        (entry("a", None, "x"), "id: there is an entry 'a' already"),
        (entry("b", "later", "x"), "parentId: no entry before this one has the id 'later'"),
        (entry("b", 7, "x"), "parentId: must be an id, or null"),
        (entry("b", "l", "x"), "parentId: nothing hangs below 'l', which only moved the leaf"),
        (entry("b", "a", "leaf", targetId="gone"), "targetId: no entry before this one has the id 'gone'"),
        (entry("", "a", "x"), "id: must be a text that is not empty"),
        (entry("b", "a", ""), "type: must be a text that is not empty"),
        (entry("b", "a", "x", timestamp="soon"), "timestamp: 'soon' is no time in ISO 8601"),
        (entry("b", "a", "x", timestamp=1), "timestamp: must be a text that is not empty"),
        ({"type": "x", "id": "b", "timestamp": HEADER["timestamp"]}, "parentId: must be an id, or null"),
    ],
)
def test_a_line_that_is_no_entry_is_refused_by_its_number(line: bytes | dict[str, Any], complaint: str) -> None:
    bad = line if isinstance(line, bytes) else json.dumps(line).encode()
    before = jsonl(HEADER, message("a", None), entry("l", "a", "leaf", targetId=None))
    error = refused(before + bad + b"\n" + jsonl(message("z", "a")))
    assert error.code == "invalid_entry"
    assert str(error).startswith("line 4: ")
    assert complaint in str(error)
