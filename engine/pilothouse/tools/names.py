"""Names of tools: those of the built-in ones, and what a name must be."""

import hashlib
import re

SANDBOXED_NAMES = ("file_read", "file_write", "file_list", "apply_patch", "shell")
"""Those that work in the sandbox."""

BUILTIN_NAMES = (*SANDBOXED_NAMES, "web_fetch")

LONGEST = 64
"""Characters of a tool's name that every provider takes."""

_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def legal_name(plain: str) -> str:
    """The name. Where that is not legal for every provider, too long, or the name of a built-in tool, it is made so,
    and ends in a digest of what it was: `a.b` and `a/b` stay apart."""
    legal = _ILLEGAL.sub("_", plain)
    if legal == plain and len(legal) <= LONGEST and legal not in BUILTIN_NAMES:
        return legal
    mark = hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{legal[: LONGEST - 9]}_{mark}"
