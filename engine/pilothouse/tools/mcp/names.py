"""The names under which a model sees the tools of MCP servers."""

from pilothouse.tools.names import legal_name


def tool_name(server: str, tool: str) -> str:
    """`<server>_<tool>`, always: so a name says whose tool it is, and depends on no other tool. A tool that turns up
    later renames none, a session that is resumed finds each under the name that it had, and a server cannot take the
    place of another's tool or of a built-in one. Servers' names have no `_`, so theirs do, too.
    """
    return legal_name(f"{server}_{tool}")
