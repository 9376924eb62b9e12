"""The names under which a model sees the tools of MCP servers."""

import hashlib
import re

from pilothouse.tools.names import BUILTIN_NAMES

LONGEST = 64
"""Characters of a tool's name that every provider takes."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`<server>_<tool>`, always: so a name says whose tool it is, and depends on no other tool. A tool that turns up
    later renames none, a session that is resumed finds each under the name that it had, and a server cannot take the
    place of another's tool or of a built-in one.

    Where that is not legal for every provider, too long, or the name of a built-in tool, it is made so, and ends in a
    digest of what it was: `a.b` and `a/b` stay apart. Servers' names have no `_`, so theirs do, too.
    """
    plain = f"{server}_{tool}"
    legal = _ILLEGAL.sub("_", plain)
    if legal == plain and len(legal) <= LONGEST and legal not in BUILTIN_NAMES:
        return legal
    mark = hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{legal[: LONGEST - 9]}_{mark}"
