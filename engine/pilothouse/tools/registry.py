"""The tools of one agent, by name."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from pilothouse.models.provider import ToolSpec
from pilothouse.tools.schema import Schema, SchemaRefused
from pilothouse.tools.tool import Tool


class ToolRefused(ValueError):  # noqa: N818 - the outcome, as the caller reports it
    """A tool cannot be registered: its name is taken, or its parameters are no JSON schema."""


class ToolRegistry:
    """Finds tools and checks arguments. Raises ToolRefused for a duplicate name or a bad schema."""

    def __init__(self, tools: Sequence[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._schemas: dict[str, Schema] = {}
        for tool in tools:
            self._add(tool)
        self.specs = tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in tools)

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def problems(self, name: str, arguments: Mapping[str, JsonValue]) -> str:
        """What is wrong with the arguments of a registered tool, with places; empty if nothing is."""
        return self._schemas[name].problems(arguments, "arguments")

    def _add(self, tool: Tool) -> None:
        if tool.name in self._tools:
            raise ToolRefused(f"two tools are named `{tool.name}`; a model could not tell them apart")
        try:
            self._schemas[tool.name] = Schema(tool.parameters)
        except SchemaRefused as error:
            raise ToolRefused(f"the parameters of the tool `{tool.name}` are no valid JSON schema: {error}") from None
        self._tools[tool.name] = tool
