"""The built-in tools, by the names under which an Agent lists them."""

from collections.abc import Sequence

from pilothouse.tools.files import FileRead, FileWrite
from pilothouse.tools.registry import ToolRefused
from pilothouse.tools.sandboxed import DEFAULT_OUTPUT_BYTES, Sandboxes
from pilothouse.tools.shell import Shell
from pilothouse.tools.tool import Tool

BUILTIN_NAMES = (FileRead.name, FileWrite.name, Shell.name)


def builtin_tools(names: Sequence[str], sandboxes: Sandboxes, output_bytes: int = DEFAULT_OUTPUT_BYTES) -> list[Tool]:
    """The named tools, working in the sandbox. Raises ToolRefused for a name that is not built in."""
    made: dict[str, Tool] = {
        FileRead.name: FileRead(sandboxes, output_bytes),
        FileWrite.name: FileWrite(sandboxes),
        Shell.name: Shell(sandboxes, output_bytes),
    }
    for name in names:
        if name not in made:
            raise ToolRefused(f"`{name}` is not a built-in tool; they are: {', '.join(BUILTIN_NAMES)}")
    return [made[name] for name in names]
