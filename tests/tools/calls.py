"""How the tests call a tool and read what it answers."""

from typing import Any

from pilothouse.tools.registry import ToolRegistry
from pilothouse.tools.tool import Tool, ToolInvocation, ToolResult


async def nobody(partial: ToolResult) -> None:
    """Takes updates for nobody."""


async def use(tool: Tool, **arguments: Any) -> ToolResult:
    """The result of one call whose arguments satisfy the tool's schema."""
    assert ToolRegistry([tool]).problems(tool.name, arguments) == ""
    return await tool.execute(ToolInvocation("A", arguments, nobody))


def text(result: ToolResult) -> str:
    return "".join(block.text for block in result.content if block.type == "text")
