"""The built-in tools, by the names under which an Agent lists them."""

from collections.abc import Callable, Mapping, Sequence

from pilothouse.governance.domains import DomainGate
from pilothouse.tools.files import FileList, FileRead, FileWrite
from pilothouse.tools.names import BUILTIN_NAMES
from pilothouse.tools.patch.apply import ApplyPatch
from pilothouse.tools.registry import ToolRefused
from pilothouse.tools.sandboxed import Sandboxes
from pilothouse.tools.shell import Shell
from pilothouse.tools.tool import Tool
from pilothouse.tools.web.fetch import WebFetch

_IN_THE_SANDBOX: Mapping[str, Callable[[Sandboxes], Tool]] = {
    tool.name: tool for tool in (FileRead, FileWrite, FileList, ApplyPatch, Shell)
}


def builtin_tools(names: Sequence[str], sandboxes: Sandboxes, gate: DomainGate) -> list[Tool]:
    """The named tools. Raises ToolRefused for a name that is not built in."""
    return [_make(name, sandboxes, gate) for name in names]


def _make(name: str, sandboxes: Sandboxes, gate: DomainGate) -> Tool:
    if name == WebFetch.name:
        return WebFetch(gate)
    if name in _IN_THE_SANDBOX:
        return _IN_THE_SANDBOX[name](sandboxes)
    raise ToolRefused(f"`{name}` is not a built-in tool; they are: {', '.join(BUILTIN_NAMES)}")
