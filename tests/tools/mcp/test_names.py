"""Names of servers' tools: legal for every provider, never twice, never another's."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.tools.mcp.names import tool_name
from pilothouse.tools.names import BUILTIN_NAMES

SERVERS = st.text(string.ascii_lowercase + string.digits + "-", min_size=1, max_size=63)
TOOLS = st.text(min_size=1, max_size=140)


@pytest.mark.parametrize(("server", "tool", "name"), [("git", "log", "git_log"), ("a-b", "C_d-1", "a-b_C_d-1")])
def test_a_tool_bears_its_servers_name(server: str, tool: str, name: str) -> None:
    assert tool_name(server, tool) == name


@given(SERVERS, TOOLS, SERVERS, TOOLS)
def test_each_name_is_legal_and_two_tools_never_share_one(s1: str, t1: str, s2: str, t2: str) -> None:
    first, second = tool_name(s1, t1), tool_name(s2, t2)
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", first)
    assert first not in BUILTIN_NAMES
    assert (first == second) == ((s1, t1) == (s2, t2))


def test_names_that_differ_in_illegal_signs_or_after_the_longest_stay_apart() -> None:
    assert len({tool_name("s", tool) for tool in ("a.b", "a/b", "a_b", "a b", "ä_b")}) == 5
    assert tool_name("s", "x" * 90 + "1") != tool_name("s", "x" * 90 + "2")


def test_a_server_cannot_take_a_built_in_tools_name() -> None:
    assert re.fullmatch("file_read_[0-9a-f]{8}", tool_name("file", "read"))
    assert re.fullmatch("web_fetch_[0-9a-f]{8}", tool_name("web", "fetch"))
