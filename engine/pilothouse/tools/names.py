"""The names of the built-in tools, for those who need no more of them."""

SANDBOXED_NAMES = ("file_read", "file_write", "file_list", "apply_patch", "shell")
"""Those that work in the sandbox."""

BUILTIN_NAMES = (*SANDBOXED_NAMES, "web_fetch")
